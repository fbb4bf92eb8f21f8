import pytest
import torch

from regard.alignment.heads import Head, align_pair, align_pairs, link_weights, list_heads, parse_head, rank_heads
from regard.alignment.links import Gold
from regard.alignment.soft import SoftAlignment
from regard.alignment.words import Units
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
    assert parse_head(text) == head
    assert parse_head(text, shift=True) == head._replace(shift=True)


@pytest.mark.parametrize("text", ["decoder.cross:", "decoder.cross:x", "decoder.cross:-1"])
def test_a_number_has_to_be_one(text):
    with pytest.raises(ConfigError, match=f"a head is written NAME:NUMBER, such as decoder.cross:0, got '{text}'"):
        parse_head(text)


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


SOURCE = Units(("a", "bc"), torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]], dtype=torch.bool))
TARGET = Units(("x", "yz"), torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]], dtype=torch.bool))
PAIR_WEIGHTS = torch.tensor([[0.3, 0.2, 0.2, 0.3], [0.4, 0.3, 0.3, 0.0], [0.0, 0.1, 0.2, 0.7], [1.0, 0.0, 0.0, 0.0]])
PAIR = SoftAlignment(SOURCE, TARGET, {"decoder.cross": PAIR_WEIGHTS[None]})


def test_each_target_is_linked_to_its_largest_weight():
    assert link_weights(torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.0, 0.0]])) == {(1, 0), (0, 1)}


def test_above_a_threshold_everything_is_linked():
    assert link_weights(torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.3, 0.2]]), 0.3) == {(1, 0), (0, 1), (1, 1)}


def test_both_directions_above_a_threshold_is_the_intersection_of_their_links():
    there, back = torch.rand(4, 5), torch.rand(5, 4)
    both = link_weights(there, 0.5) & frozenset((source, target) for target, source in link_weights(back, 0.5))
    assert both == link_weights(torch.minimum(there, back.T), 0.5)


def test_weights_are_merged_before_links_are_made():
    # a and bc have 0.3 and 0.4 of x, and of yz 0.2 and 0.45
    assert align_pair(PAIR) == {(1, 0), (1, 1)}


def test_or_links_of_tokens_are_merged_and_the_end_of_the_source_is_no_word():
    # tokens: x to a; y to a, z to c (not to the end, where most of it goes)
    assert align_pair(PAIR, by="links") == {(0, 0), (0, 1), (1, 1)}


@pytest.mark.parametrize("by", ["weights", "links"])
def test_shifted_the_last_word_listens_to_the_end(by):
    # x is read in the second row: a or b; y and z in the third, mostly c, and the fourth: a
    assert align_pair(PAIR, Head(shift=True), by=by) == ({(1, 0), (0, 1)} if by == "weights" else {(0, 0), (1, 1), (0, 1)})


def test_many_pairs_are_linked_one_by_one():
    assert align_pairs([PAIR, PAIR], threshold=0.44) == [frozenset({(1, 1), (1, 0)} & align_pair(PAIR, threshold=0.44))] * 2
    assert align_pair(PAIR, threshold=0.44) == {(1, 1)}


def words(count):
    """So many words of one token each, and the end."""
    return Units(tuple("abcdef"[:count]), torch.eye(count + 1, dtype=torch.bool)[:count])


def looking(*places):
    """Weights that look at one place in each step, and at the end in the last one."""
    return torch.eye(4)[torch.tensor(places)]


def pair():
    """Of two layers with two heads, the second head of the first looks right, one step too late."""
    first = torch.stack((looking(0, 0, 0, 3), looking(3, 2, 0, 1)))
    second = torch.stack((looking(2, 1, 0, 3), looking(2, 2, 1, 3)))
    return SoftAlignment(words(3), words(3), {"decoder.0.cross": first, "decoder.0.self": first, "decoder.1.cross": second})


GOLD = Gold({(2, 0), (0, 1), (1, 2)})


def test_candidates_are_all_heads_and_their_means_both_where_a_word_is_written_and_read():
    found = list_heads(pair().weights)
    assert len(found) == len(set(found)) == 2 * 3 * 2
    assert {each.attention for each in found} == {"decoder.0.cross", "decoder.1.cross"}
    assert list_heads({"decoder.cross": torch.ones(1, 2, 2)}) == [Head("decoder.cross"), Head("decoder.cross", shift=True)]


@pytest.mark.parametrize("by", ["aer", "f1", "accuracy"])
def test_the_best_head_comes_first(by):
    found = rank_heads([pair(), pair()], [GOLD, GOLD], by)
    assert found[0].head == Head("decoder.0.cross", 1, shift=True)
    assert found[0].metrics["aer"] == 0
    ranked = [each.metrics[by] for each in found]
    assert ranked == sorted(ranked, reverse=by != "aer")


def test_of_equals_the_first_wins():
    even = SoftAlignment(words(3), words(3), {"decoder.cross": looking(0, 1, 2, 3)[None].expand(2, -1, -1)})
    assert rank_heads([even], [Gold({(0, 0), (1, 1), (2, 2)})])[0].head == Head("decoder.cross")


def test_a_model_without_attention_has_nothing_to_choose_from():
    with pytest.raises(ConfigError, match="an alignment needs an attention over the source, and this model has none"):
        rank_heads([pair()._replace(weights={})], [GOLD])
