import re

import pytest
import torch
from torch.nn import functional as F

from regard.attention.normalise.softmax import Softmax
from regard.attention.score.distance import Distance
from regard.attention.score.scaled_dot import ScaledDot


def test_the_score_falls_with_the_square_of_the_distance():
    query = torch.tensor([[[[1.0, 2.0]]]])
    key = torch.tensor([[[[4.0, 6.0], [1.0, 2.0], [1.0, 3.0]]]])
    # distances 5, 0 and 1: -25/2, 0 and -1/2
    assert Distance(sigma=1.0)(query, key).flatten().tolist() == [-12.5, 0.0, -0.5]


def test_sigma_says_how_far_is_far():
    query, key = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[4.0, 6.0]]]])
    assert Distance(sigma=5.0)(query, key).item() == -0.5  # 25 / (2·25)


def test_sigma_squared_is_the_root_of_the_size_unless_told():
    query, key = torch.zeros(1, 1, 1, 4), torch.ones(1, 1, 1, 4)
    assert Distance()(query, key).item() == -1.0  # 4 / (2 √4)


def test_keys_of_one_length_get_the_weights_of_scaled_dot():
    query, key = torch.randn(2, 3, 4, 8), 3 * F.normalize(torch.randn(2, 3, 5, 8), dim=-1)
    torch.testing.assert_close(Softmax()(Distance()(query, key)), Softmax()(ScaledDot()(query, key)))


def test_no_score_is_above_its_highest():
    data = 1000 * torch.randn(1, 1, 50, 8)
    scores = Distance()(data, data)
    assert scores.max() <= Distance.highest == 0.0
    torch.testing.assert_close(scores.diagonal(dim1=-2, dim2=-1), torch.zeros(1, 1, 50), atol=0.5, rtol=0)


def test_long_vectors_do_not_overflow_in_half_precision():
    query = torch.full((1, 1, 1, 4), 1000.0, dtype=torch.float16)  # whose squares are 10⁶, and float16 ends at 65504
    key = query + torch.tensor([0.0, 4.0, 0.0, 0.0], dtype=torch.float16)
    assert Distance(sigma=1.0)(query, key).item() == -8.0


@pytest.mark.parametrize("sigma", [0.0, -1.0])
def test_a_sigma_that_is_not_positive_is_refused(sigma):
    with pytest.raises(ValueError, match=re.escape(f"Distance needs sigma above 0, got {sigma}")):
        Distance(sigma=sigma)


def test_a_query_and_a_key_of_different_sizes_are_refused():
    text = "Distance needs queries and keys of one size, got 3 and 2; Bilinear and Additive take different sizes"
    with pytest.raises(ValueError, match=re.escape(text)):
        Distance()(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))
