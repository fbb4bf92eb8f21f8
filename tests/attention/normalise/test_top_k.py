import math

import pytest
import torch

from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.top_k import TopK


def row(*scores: float) -> torch.Tensor:
    return torch.tensor(scores)[None, None, None]


def test_the_best_few_share_as_in_softmax():
    weights = TopK(2)(row(0.0, math.log(3), -1.0, -2.0))
    torch.testing.assert_close(weights, row(0.25, 0.75, 0.0, 0.0))
    assert weights[..., 2:].tolist() == [[[[0.0, 0.0]]]]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_ties_are_broken_so_that_never_more_than_k_are_read(k):
    weights = TopK(k)(torch.zeros(1, 2, 3, 5))
    assert ((weights > 0).sum(-1) == k).all()
    torch.testing.assert_close(weights.amax(-1), torch.full((1, 2, 3), 1 / k))


def test_with_no_more_than_k_keys_it_is_softmax():
    scores = torch.randn(2, 3, 4, 5)
    torch.testing.assert_close(TopK(5)(scores), Softmax()(scores))
    torch.testing.assert_close(TopK(99)(scores), Softmax()(scores))


def test_only_allowed_keys_count_among_the_best():
    allowed = torch.tensor([[[[False, True, True, True]]]])
    weights = TopK(2)(row(9.0, 0.0, math.log(3), -1.0), allowed)
    torch.testing.assert_close(weights, row(0.0, 0.25, 0.75, 0.0))


def test_fewer_allowed_keys_than_k_share_among_themselves():
    allowed = torch.tensor([[[[False, True, False], [False, False, False]]]])
    weights = TopK(2)(row(9.0, 0.0, 1.0).expand(1, 1, 2, 3), allowed)
    assert weights[0, 0].tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def test_large_scores_are_no_trouble():
    assert TopK(2)(row(1e4, 1e4, -1e4)).flatten().tolist() == [0.5, 0.5, 0.0]
    assert TopK(1)(row(-1e4, -1e4, -1e4)).sum() == 1


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_one_is_refused(k):
    with pytest.raises(ValueError, match=f"TopK needs k of 1 or more, got {k}"):
        TopK(k)
