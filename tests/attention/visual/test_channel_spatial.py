import pytest
import torch
from torch.testing import assert_close

from regard.attention.visual.channel_spatial import ChannelSpatial

IMAGE = torch.randn(2, 4, 3, 2, generator=torch.Generator().manual_seed(0))


def test_the_channels_come_first_and_the_places_see_what_they_let_through():
    module = ChannelSpatial(4, reduction=2, kernel=3)
    first = IMAGE.mean((2, 3)), IMAGE.amax((2, 3))
    channel = sum(module.channel.excite(each) for each in first).sigmoid()[..., None, None]
    passed = channel * IMAGE
    place = module.spatial.f(torch.cat((passed.mean(1, keepdim=True), passed.amax(1, keepdim=True)), dim=1)).sigmoid()
    assert_close(module(IMAGE), place * passed)


def test_the_weights_are_what_each_number_was_multiplied_by():
    attended = ChannelSpatial(4, reduction=2, kernel=3).attend(IMAGE)
    assert attended.weights.shape == (2, 1, 4, 6)
    assert_close(attended.context, IMAGE * attended.weights.view(2, 4, 3, 2))


def test_each_half_says_its_own():
    module = ChannelSpatial(4, reduction=2)
    channel = module.channel.attend(IMAGE)
    spatial = module.spatial.attend(channel.context)
    assert_close(module.attend(IMAGE).weights, channel.weights.mT @ spatial.weights)


def test_its_channels_look_at_peaks_and_its_options_reach_both_halves():
    module = ChannelSpatial(8, reduction=4, kernel=5)
    assert module.channel.peak
    assert module.channel.excite[0].weight.shape == (2, 8)
    assert module.spatial.f.kernel_size == (5, 5)


def test_a_reduction_that_does_not_divide_is_refused():
    with pytest.raises(
        ValueError, match="Channel needs a reduction that divides its channels, got 8 channels and reduction"
    ):
        ChannelSpatial(8)
