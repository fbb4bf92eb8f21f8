import numpy as np
import pytest
import torch

from regard.data.audio.synthetic.syllables import WORDS, plan_utterance, synthesise, synthesise_letter


def test_a_sentence_is_the_same_each_time_and_loud_where_words_are():
    [sound, *_] = synthesise(3, seed=5)
    assert torch.equal(sound(), sound())
    assert len(sound()) == sound.length
    quiet = torch.ones(sound.length, dtype=torch.bool)
    for word in sound.words:
        quiet[int(word.start * 16_000) : int(word.end * 16_000) + 1] = False
    assert sound()[~quiet].square().mean() > 20 * sound()[quiet].square().mean()
    assert sound.text == " ".join(word.text for word in sound.words)
    assert sound.record.target == sound.text


def test_letters_follow_each_other_without_a_gap_inside_a_word():
    sound = plan_utterance(["kala", "mino"], seed=1)
    assert [letter.text for letter in sound.letters] == list("kalamino")
    for one, other in zip(sound.letters[:4], sound.letters[1:4], strict=False):
        assert one.end == other.start
    burst = (sound.letters[0].start + sound.letters[0].end) / 2
    assert sound.words[0][1:] == (pytest.approx(burst), sound.letters[3].end)
    assert sound.words[1].start == sound.letters[4].start
    assert sound.words[1].start > sound.words[0].end
    assert {letter for word in WORDS for letter in word} == set("aeioumnlsftkp")


def test_what_cannot_be_synthesised_is_an_error():
    with pytest.raises(ValueError, match=r"letters that can be synthesised are aefiklmnopstu, got 'x'"):
        synthesise_letter("x", 100, 16_000, 100.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"data.samples needs to be from 1 to 100,000, got 0"):
        synthesise(0, 0)
    with pytest.raises(ValueError, match=r"data.rate=8000 or more, got 4000"):
        synthesise(1, 0, 4000)
