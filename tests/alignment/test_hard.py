import pytest
import torch

from regard.alignment.hard import every, hard, linked
from regard.alignment.head import Head
from regard.alignment.soft import Soft
from regard.alignment.words import Units

SOURCE = Units(("a", "bc"), torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]], dtype=torch.bool))
TARGET = Units(("x", "yz"), torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]], dtype=torch.bool))
WEIGHTS = torch.tensor([[0.3, 0.2, 0.2, 0.3], [0.4, 0.3, 0.3, 0.0], [0.0, 0.1, 0.2, 0.7], [1.0, 0.0, 0.0, 0.0]])
PAIR = Soft(SOURCE, TARGET, {"decoder.cross": WEIGHTS[None]})


def test_each_target_is_linked_to_its_largest_weight():
    assert linked(torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.0, 0.0]])) == {(1, 0), (0, 1)}


def test_above_a_threshold_everything_is_linked():
    assert linked(torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.3, 0.2]]), 0.3) == {(1, 0), (0, 1), (1, 1)}


def test_both_directions_above_a_threshold_is_the_intersection_of_their_links():
    there, back = torch.rand(4, 5), torch.rand(5, 4)
    both = linked(there, 0.5) & frozenset((source, target) for target, source in linked(back, 0.5))
    assert both == linked(torch.minimum(there, back.T), 0.5)


def test_weights_are_merged_before_links_are_made():
    # a and bc have 0.3 and 0.4 of x, and of yz 0.2 and 0.45
    assert hard(PAIR) == {(1, 0), (1, 1)}


def test_or_links_of_tokens_are_merged_and_the_end_of_the_source_is_no_word():
    # tokens: x to a; y to a, z to c (not to the end, where most of it goes)
    assert hard(PAIR, by="links") == {(0, 0), (0, 1), (1, 1)}


@pytest.mark.parametrize("by", ["weights", "links"])
def test_shifted_the_last_word_listens_to_the_end(by):
    # x is read in the second row: a or b; y and z in the third, mostly c, and the fourth: a
    assert hard(PAIR, Head(shift=True), by=by) == ({(1, 0), (0, 1)} if by == "weights" else {(0, 0), (1, 1), (0, 1)})


def test_many_pairs_are_linked_one_by_one():
    assert every([PAIR, PAIR], threshold=0.44) == [frozenset({(1, 1), (1, 0)} & hard(PAIR, threshold=0.44))] * 2
    assert hard(PAIR, threshold=0.44) == {(1, 1)}
