import re

import pytest
import torch

from regard.attention.per_head import PerHead, repeat_heads


def test_each_head_goes_through_its_own_matrix():
    linear = PerHead(2, 1, heads=2)
    linear.weight.data = torch.tensor([[[1.0, 2.0]], [[10.0, 20.0]]])
    data = torch.tensor([[[[3.0, 4.0]], [[3.0, 4.0]]]])
    assert linear(data).flatten().tolist() == [11.0, 110.0]


def test_it_begins_within_its_bound():
    assert 0.24 < PerHead(16, 200).weight.abs().max() <= 0.25  # 1/√16
    assert 0.09 < PerHead(16, 200, within=0.1).weight.abs().max() <= 0.1


def test_one_matrix_serves_all_heads():
    linear = PerHead(2, 1)
    linear.weight.data = torch.tensor([[[1.0, 2.0]]])
    assert linear(torch.ones(1, 3, 1, 2)).flatten().tolist() == [3.0, 3.0, 3.0]


def test_one_head_may_go_through_every_matrix():
    linear = PerHead(1, 1, heads=3)
    linear.weight.data = torch.tensor([1.0, 2.0, 3.0])[:, None, None]
    assert linear(torch.full((1, 1, 1, 1), 5.0)).flatten().tolist() == [5.0, 10.0, 15.0]


def test_a_group_serves_neighbouring_matrices():
    linear = PerHead(1, 1, heads=4)
    linear.weight.data = torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None, None]
    data = torch.tensor([5.0, 7.0])[None, :, None, None]
    assert linear(data).flatten().tolist() == [5.0, 10.0, 21.0, 28.0]


def test_it_begins_within_the_bounds_of_its_size():
    assert PerHead(16, 100, heads=2).weight.abs().max() <= 1 / 4


def test_it_says_what_it_is():
    assert repr(PerHead(2, 3, heads=4)) == "PerHead(2, 3, heads=4)"


def test_groups_are_spread_over_neighbouring_heads():
    groups = torch.tensor([1.0, 2.0])[None, :, None, None]
    assert repeat_heads(groups, 4).flatten().tolist() == [1.0, 1.0, 2.0, 2.0]


def test_as_many_groups_as_heads_or_one_of_either_stay_as_they_are():
    data, one = torch.zeros(1, 3, 2, 2), torch.zeros(1, 1, 2, 2)
    assert repeat_heads(data, 3) is data
    assert repeat_heads(data, 1) is data
    assert repeat_heads(one, 6) is one


def test_groups_that_do_not_divide_the_heads_are_refused():
    text = "4 heads cannot share 3 key heads evenly; choose a divisor of 4"
    with pytest.raises(ValueError, match=re.escape(text)):
        repeat_heads(torch.zeros(1, 3, 2, 2), 4)
