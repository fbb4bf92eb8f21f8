from random import Random

import pytest

from regard.data.text.noise import Noise

WORDS = [f"w{number}" for number in range(1000)]
TEXT = " ".join(WORDS)


def test_words_are_left_out_and_blanked_as_often_as_asked():
    found = Noise(reach=0)(TEXT, Random(0)).split()
    assert 1000 - len(found) == pytest.approx(100, abs=40)
    assert found.count("<blank>") == pytest.approx(90, abs=40)
    rest = [word for word in found if word != "<blank>"]
    assert rest == sorted(rest, key=WORDS.index)


def test_no_word_moves_further_than_its_reach_and_some_move_as_far():
    found = Noise(drop=0.0, blank=0.0, reach=3)(TEXT, Random(0)).split()
    moves = [abs(place - WORDS.index(word)) for place, word in enumerate(found)]
    assert sorted(found) == sorted(WORDS)
    assert max(moves) == 3
    assert Noise(drop=0.0, blank=0.0, reach=0)(TEXT, Random(0)) == TEXT


def test_a_text_without_spaces_is_noised_by_characters():
    found = Noise(drop=0.0, blank=0.0, reach=1)("汤姆追逐杰瑞", Random(1))
    assert sorted(found) == sorted("汤姆追逐杰瑞")
    assert found != "汤姆追逐杰瑞"


def test_one_word_always_stays():
    assert all(Noise(drop=0.99, blank=0.0)("a b", Random(seed)) for seed in range(20))


def test_equal_chances_give_equal_noise():
    assert Noise()(TEXT, Random(3)) == Noise()(TEXT, Random(3)) != Noise()(TEXT, Random(4))


def test_noise_that_leaves_nothing_is_refused():
    with pytest.raises(ValueError, match=r"noise needs a drop from 0 up to but not including 1, got 1.0"):
        Noise(drop=1.0)
    with pytest.raises(ValueError, match="noise needs a blank from 0"):
        Noise(blank=-0.1)
    with pytest.raises(ValueError, match="noise needs a reach of 0 or more places, got -1"):
        Noise(reach=-1)
