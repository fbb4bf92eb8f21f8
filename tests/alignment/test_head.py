import pytest
import torch

from regard.alignment.head import Head, parse
from regard.errors import ConfigError

WEIGHTS = {
    "decoder.0.self": torch.ones(2, 3, 3),
    "decoder.0.cross": torch.arange(12.0).view(2, 3, 2),
    "decoder.1.cross": torch.arange(12.0, 24.0).view(2, 3, 2),
}


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (None, Head()),
        ("", Head()),
        ("decoder.cross", Head("decoder.cross")),
        ("decoder.2.cross:1", Head("decoder.2.cross", 1)),
        (":3", Head(None, 3)),
    ],
)
def test_a_head_is_written_by_name_and_number(text, head):
    assert parse(text) == head
    assert parse(text, shift=True) == head._replace(shift=True)


@pytest.mark.parametrize("text", ["decoder.cross:", "decoder.cross:x", "decoder.cross:-1"])
def test_a_number_has_to_be_one(text):
    with pytest.raises(ConfigError, match=f"a head is written NAME:NUMBER, such as decoder.cross:0, got '{text}'"):
        parse(text)


def test_unless_told_otherwise_it_is_the_mean_of_the_last_attention_over_the_source():
    assert torch.equal(Head().read(WEIGHTS), WEIGHTS["decoder.1.cross"].mean(0))


def test_one_head_of_one_attention():
    assert torch.equal(Head("decoder.0.cross", 1).read(WEIGHTS), WEIGHTS["decoder.0.cross"][1])


def test_shifted_a_row_is_that_of_the_next_step_and_the_last_has_none():
    plain = WEIGHTS["decoder.0.cross"][0]
    assert Head("decoder.0.cross", 0, shift=True).read(WEIGHTS).tolist() == [*plain[1:].tolist(), [0, 0]]


def test_it_can_be_told():
    assert str(Head()) == "last:mean"
    assert str(Head("decoder.1.cross", 2, shift=True)) == "decoder.1.cross:2 shifted"


@pytest.mark.parametrize(
    ("head", "weights", "told"),
    [
        (
            Head(),
            {"decoder.0.self": torch.ones(1, 1, 1)},
            "an alignment needs an attention over the source, and this model has",
        ),
        (
            Head("decoder.0.self"),
            WEIGHTS,
            "no attention over the source is called 'decoder.0.self'; there are decoder.0.cross, ",
        ),
        (Head("decoder.0.cross", 2), WEIGHTS, "decoder.0.cross has 2 heads, counted from 0, and 2 was asked for"),
        (
            Head(None, 1),
            {"cross": torch.ones(1, 1, 1)},
            "the last attention has 1 head, counted from 0, and 1 was asked for",
        ),
    ],
)
def test_what_is_not_there_is_refused(head, weights, told):
    with pytest.raises(ConfigError, match=told):
        head.read(weights)
