import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention.visual.channel import Channel

IMAGE = torch.tensor([[[[1.0, 5.0]], [[0.0, 2.0]]]])  # two channels of two places: means 3 and 1, largest 5 and 2


def small(**options):
    """W₁ takes the second channel from the first, W₂ gives the difference back once and twice."""
    module = Channel(2, reduction=2, **options)
    module.excite[0].weight.data = torch.tensor([[1.0, -1.0]])
    module.excite[2].weight.data = torch.tensor([[1.0], [2.0]])
    return module


def sigmoid(number):
    return 1 / (1 + math.exp(-number))


def test_the_means_decide_how_much_of_each_channel_passes():
    attended = small().attend(IMAGE)
    one, other = sigmoid(2), sigmoid(4)
    assert_close(attended.weights, torch.tensor([[[[one, other]]]]))
    assert_close(attended.context, torch.tensor([[[[one, 5 * one]], [[0.0, 2 * other]]]]))


def test_a_difference_below_zero_is_none():
    assert_close(small().attend(IMAGE.flip(1)).weights, torch.full((1, 1, 1, 2), 0.5))


def test_with_a_peak_the_largest_numbers_go_the_same_way():
    # 2 from the means and 3 from the largest
    assert_close(small(peak=True).attend(IMAGE).weights, torch.tensor([[[[sigmoid(5), sigmoid(10)]]]]))


def test_channels_may_compete():
    weights = small(normalise="softmax").attend(IMAGE).weights
    assert_close(weights, torch.tensor([[[[2.0, 4.0]]]]).softmax(-1))


def test_the_hidden_layer_is_narrower_by_the_reduction():
    assert Channel(64).excite[0].weight.shape == (4, 64)
    assert sum(each.numel() for each in Channel(64, reduction=8).parameters()) == 2 * 64 * 8


def test_a_reduction_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="Channel needs a reduction that divides its channels, got 24 channels and redu"):
        Channel(24)
