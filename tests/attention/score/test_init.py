import pytest
import torch

from regard.attention.score import (
    adds_to_context,
    build_positions,
    combine,
    compare,
    compute_relative_positions,
    is_positional,
    prepare,
)
from regard.attention.score.alibi import Alibi
from regard.attention.score.dot import Dot
from regard.attention.score.rotary import Rotary
from regard.attention.score.shaw import Shaw

CPU = torch.device("cpu")


def test_places_are_counted_from_the_first():
    assert build_positions(3, 0, CPU).tolist() == [[0, 1, 2]]
    assert build_positions(2, 5, CPU).tolist() == [[5, 6]]


def test_each_row_may_begin_at_a_place_of_its_own():
    assert build_positions(2, torch.tensor([0, 7]), CPU).tolist() == [[0, 1], [7, 8]]


def test_a_distance_is_how_far_after_the_query_a_key_stands():
    assert compute_relative_positions(2, 3, 0, CPU).tolist() == [[[0, 1, 2], [-1, 0, 1]]]
    assert compute_relative_positions(1, 3, 2, CPU).tolist() == [[[-2, -1, 0]]]
    assert compute_relative_positions(1, 2, torch.tensor([0, 3]), CPU).tolist() == [[[0, 1]], [[-3, -2]]]


@pytest.mark.parametrize(("score", "looks"), [(Dot(), False), (Alibi(), True), (Rotary(), True)], ids=str)
def test_a_score_says_whether_it_looks_at_positions(score, looks):
    assert is_positional(score) is looks


def test_a_score_that_looks_at_positions_is_told_them_and_another_is_not():
    query, key = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4)
    assert torch.equal(compare(Dot(), query, prepare(Dot(), key, first=5), offset=5), query @ key.mT)
    turned = Rotary().turn(key, 5)
    assert torch.equal(prepare(Rotary(), key, first=5), turned)
    torch.testing.assert_close(compare(Rotary(), query, turned, offset=7), Rotary().turn(query, 7) / 2 @ turned.mT)


def test_a_score_that_has_a_say_in_what_is_read_is_asked_and_another_is_not():
    weights, values, shaw = torch.rand(1, 1, 2, 3), torch.randn(1, 1, 3, 4), Shaw(key=4)
    assert (adds_to_context(Dot()), adds_to_context(shaw)) == (False, True)
    assert torch.equal(combine(Dot(), weights, values, 1), weights @ values)
    assert torch.equal(combine(shaw, weights, values, 1), shaw.combine(weights, values, 1))
