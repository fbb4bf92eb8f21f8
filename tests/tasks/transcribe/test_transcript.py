import json

import torch

from regard.alignment.stretches import Stretch, Stretches
from regard.alignment.times import TimedWord
from regard.data.text.tokenizers import train
from regard.tasks.transcribe.transcript import Transcript, find_words, join_transcripts, pool_activity, refine_words

TWO = Transcript((TimedWord("kala", 0.5, 0.9, 0.75), TimedWord("mino", 1.0, 1.5)), 2.0)


def test_words_are_found_among_the_tokens():
    tokenizer = train("characters", ["ab c中文"], 20)
    tokens = tokenizer.encode("ab c中文")
    units = find_words(tokenizer, tokens, tokenizer.decode(tokens))
    assert units.texts == ("ab", "c", "中", "文")
    assert units.members.int().argmax(1).tolist() == [0, 3, 4, 5]
    assert units.members.sum(1).tolist() == [2, 1, 1, 1]


def test_a_transcript_is_printed_in_each_form():
    assert TWO.table().splitlines() == ["    0.50     0.90  0.75  kala", "    1.00     1.50  1.00  mino"]
    assert TWO.format("srt").splitlines()[1] == "00:00:00,500 --> 00:00:01,500"
    read = json.loads(TWO._replace(stretches=Stretches((Stretch(0.0, 0.4, 0),), ())).format("json"))
    assert read["words"][0] == {"word": "kala", "start": 0.5, "end": 0.9, "confidence": 0.75}
    assert (read["holes"], read["loops"], read["duration"]) == ([{"start": 0.0, "end": 0.4}], [], 2.0)
    assert TWO.fields["seconds"] == 2.0
    assert TWO.shift(10.0).words[1] == TimedWord("mino", 11.0, 11.5)


def test_what_was_not_read_or_read_twice_is_warned_of():
    assert TWO.warning("a.wav") is None
    stretches = Stretches((Stretch(0.5, 1.25, 2),), (Stretch(3.0, 4.0, 5), Stretch(6.0, 7.0, 8)))
    text = TWO._replace(stretches=stretches).shift(1.0).warning("a.wav")
    assert text == (
        "a.wav: never read 1.50 to 2.25 s; read twice 4.00 to 5.00 s, 7.00 to 8.00 s; listen to what the transcript has there"
    )


def test_excerpts_are_joined_between_words():
    left = Transcript((TimedWord("a", 0.0, 1.0), TimedWord("b", 1.4, 2.2), TimedWord("c", 2.4, 3.0)), 3.0)
    right = Transcript((TimedWord("b", 1.5, 2.2), TimedWord("c", 2.4, 3.1), TimedWord("d", 3.2, 4.0)), 3.0)
    joined = join_transcripts([left, right], [(1.5, 3.0)], 4.0)
    assert [word.text for word in joined.words] == ["a", "b", "c", "d"]
    assert joined.seconds == 4.0
    hole = Stretches((Stretch(3.3, 3.9, 1),), ())
    assert join_transcripts([left, right._replace(stretches=hole)], [(1.5, 3.0)], 4.0).stretches == hole
    assert join_transcripts([left._replace(stretches=hole), right], [(1.5, 3.0)], 4.0).stretches.holes == ()


def test_activity_is_that_of_any_frame_of_a_position():
    active = torch.zeros(22, dtype=torch.bool)
    active[8:15] = True
    assert pool_activity(active, 4).tolist() == [False, False, True, True, False, False]


def test_words_are_refined_to_where_sound_begins_and_ends():
    active = torch.zeros(100, dtype=torch.bool)
    active[11:38] = active[45:60] = True
    words = [TimedWord("a", 0.08, 0.4), TimedWord("b", 0.4, 0.56), TimedWord("c", 0.8, 0.9)]
    refined = refine_words(words, active, 0.01, 0.06)
    assert [tuple(round(second, 2) for second in word[1:3]) for word in refined] == [(0.11, 0.38), (0.45, 0.6), (0.8, 0.9)]
    assert refine_words(words, torch.ones(100, dtype=torch.bool), 0.01, 0.06) == words
    assert refine_words([], active, 0.01, 0.06) == []
