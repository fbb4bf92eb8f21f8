import json

import pytest
import torch

from regard.alignment.stretches import Stretch, Stretches
from regard.alignment.times import TimedWord
from regard.data.text.tokenizers import train
from regard.tasks.transcribe.transcript import Transcript, find_words, join_transcripts, measure_activity

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
    energy = torch.full((22,), -10.0)
    energy[8:15] = 0.0
    assert measure_activity(energy, 4).tolist() == [False, False, True, True, False, False]
    assert measure_activity(torch.zeros(6), 4).tolist() == pytest.approx([True, True])
