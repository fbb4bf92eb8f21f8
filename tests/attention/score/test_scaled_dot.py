import re

import pytest
import torch

from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot


def test_the_product_is_divided_by_the_root_of_the_size():
    query = torch.tensor([[[[1.0, 1.0, 1.0, 1.0]]]])
    key = torch.tensor([[[[2.0, 2.0, 2.0, 2.0], [0.0, 3.0, 0.0, 0.0]]]])
    # 8 / √4 = 4 and 3 / √4 = 1.5
    assert ScaledDot()(query, key)[0, 0].tolist() == [[4.0, 1.5]]


def test_a_scale_replaces_the_root():
    query, key = torch.full((1, 1, 1, 4), 1.0), torch.full((1, 1, 1, 4), 2.0)
    assert ScaledDot(scale=0.25)(query, key).item() == 2.0
    assert ScaledDot(scale=1.0)(query, key).item() == Dot()(query, key).item() == 8.0
    assert ScaledDot(scale=0.0)(query, key).item() == 0.0


def test_the_spread_of_the_scores_does_not_grow_with_the_size():
    for size in (16, 1024):
        query, key = torch.randn(1, 1, 100, size), torch.randn(1, 1, 100, size)
        assert ScaledDot()(query, key).std().item() == pytest.approx(1.0, abs=0.1)
        assert Dot()(query, key).std().item() == pytest.approx(size**0.5, rel=0.1)


def test_a_query_and_a_key_of_different_sizes_are_refused():
    text = "ScaledDot needs queries and keys of one size, got 4 and 5; Bilinear and Additive take different sizes"
    with pytest.raises(ValueError, match=re.escape(text)):
        ScaledDot()(torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 1, 5))
