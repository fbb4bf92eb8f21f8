import re

import pytest
import torch

from regard.attention.score.dot import Dot


def test_each_score_is_the_product_of_a_query_and_a_key():
    query = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    key = torch.tensor([[[[5.0, 6.0], [7.0, 8.0]]]])
    scores = Dot()(query, Dot().prepare(key))
    # 1·5 + 2·6 = 17, 1·7 + 2·8 = 23, 3·5 + 4·6 = 39, 3·7 + 4·8 = 53
    assert scores[0, 0].tolist() == [[17.0, 23.0], [39.0, 53.0]]


def test_the_query_and_the_key_are_taken_as_they_are():
    data = torch.randn(2, 3, 4, 5)
    assert Dot().prepare(data) is data
    assert Dot().project(data) is data


def test_one_key_head_serves_all_query_heads():
    query, key = torch.randn(2, 3, 4, 5), torch.randn(2, 1, 6, 5)
    torch.testing.assert_close(Dot()(query, key), Dot()(query, key.expand(2, 3, 6, 5)))


def test_a_query_and_a_key_of_different_sizes_are_refused():
    text = "Dot needs queries and keys of one size, got 3 and 2; Bilinear and Additive take different sizes"
    with pytest.raises(ValueError, match=re.escape(text)):
        Dot()(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))
