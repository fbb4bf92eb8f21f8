import pytest

from regard.data.split import HeldOut, hash_fraction, hold_out
from regard.errors import DataError

RANKS = {"a": 0.791, "b": 0.243, "c": 0.182, "d": 0.096, "0.png": 0.059, "6.png": 0.034, "8.png": 0.091, "": 0.889}


def chosen(*sources):
    return [source for source, out in zip(sources, hold_out(sources, "t.tsv", "source"), strict=True) if out]


def test_a_rank_is_the_start_of_the_hash_of_a_source():
    assert {
        source: round(hash_fraction(source), 3) for source in RANKS
    } == RANKS  # sha256("a") begins with ca97...: 0xca / 0x100
    assert hash_fraction("汤姆") == hash_fraction("汤姆")


def test_sources_below_a_tenth_are_held_out_with_all_of_their_lines():
    assert chosen("a", "d", "b", "d", "0.png", "a") == ["d", "d", "0.png"]


def test_lines_that_are_added_move_no_others():
    lines = [f"line {number}" for number in range(2000)]
    few = hold_out(lines[:500], "t.tsv", "source")
    assert hold_out(lines, "t.tsv", "source")[:500] == few
    assert hold_out(lines[::-1], "t.tsv", "source")[::-1][:500] == few
    assert 160 < sum(hold_out(lines, "t.tsv", "source")) < 240  # 200 on average, give or take 13


def test_neither_side_is_ever_empty():
    assert chosen("a", "b") == ["b"]  # none is below a tenth: the least is taken
    assert chosen("d", "6.png", "8.png") == ["6.png", "8.png"]  # all are: the greatest is left


def test_one_source_cannot_be_on_two_sides():
    told = r"nothing can be held out of t\.tsv, which has one picture and no other: 'a\.png'; name a file to validate with"
    with pytest.raises(DataError, match=told):
        hold_out(["a.png"] * 3, "t.tsv", "picture")


def test_what_is_held_out_is_told_in_a_line():
    told = "data.valid is not given: 1,234 of 12,345 lines of captions.tsv are held out, by picture"
    assert str(HeldOut(1234, 12345, "captions.tsv", "picture")) == told
    assert str(HeldOut(1, 5, "a.tsv", "source")) == "data.valid is not given: 1 of 5 lines of a.tsv is held out, by source"


def test_a_long_source_is_quoted_in_short():
    with pytest.raises(DataError, match=r"and no other: 'a{80}\.\.\.'; name"):
        hold_out(["a" * 5000], "t.tsv", "source")
