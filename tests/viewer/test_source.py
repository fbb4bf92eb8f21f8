import pytest

from regard.viewer.source import SENTENCES, code, describe, in_eight_bits, join_codes


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("given", "given"),
        ("fused:sdpa", "fused kernel sdpa, which forms its weights"),
        ("measured", "reference, statistics from its own pass"),
        (
            "measured:sdpa; rows:float32",
            "fused kernel sdpa, statistics from its own pass; rows recomputed in float32 from recorded queries and keys",
        ),
    ],
)
def test_codes_are_told_in_english(source, sentence):
    assert describe(source) == sentence


def test_every_code_says_something_of_its_own():
    given = [each + ("x" if each.endswith(":") else "") for each in SENTENCES]
    assert len({describe(each) for each in given}) == len(SENTENCES)


@pytest.mark.parametrize("text", ["", "read from a log; by hand", "fused", "given:twice", "rows:", "{0}:{1}"])
def test_what_is_no_code_stands_as_it_is(text):
    assert describe(text) == text


def test_a_kernel_may_be_called_anything():
    assert describe(code("fused", "{0}: a")) == "fused kernel {0}: a, which forms its weights"


def test_several_are_joined_and_each_is_said_once():
    assert join_codes(["measured; rows:float32", "rows:float32", "again"]) == "measured; rows:float32; again"


def test_eight_bits_are_known_among_other_codes_only():
    assert in_eight_bits("eight_bits; given")
    assert not in_eight_bits("given; not eight_bits")
