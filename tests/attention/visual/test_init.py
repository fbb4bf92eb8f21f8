import re

import pytest
import torch

from regard.attention.types import Sampled
from regard.attention.visual import Gating, reduce_channels

IMAGE = torch.tensor([[[[1.0]], [[3.0]]]])  # two channels of one place


class Halves(Gating):
    """The map and its negative, of which the first counts twice as much."""

    axes = ("", "", "half")

    def split(self, image):
        return torch.stack((image, -image), dim=2)

    def score(self, values):
        return torch.tensor([[[[2.0, 1.0]]]])

    def combine(self, values, weights):
        return torch.einsum("bcmhw,bxym->bchw", values, weights)


def test_the_stages_follow_each_other():
    attended = Halves(2, "sum_to_one").attend(IMAGE)
    assert attended.weights.tolist() == [[[[pytest.approx(2 / 3), pytest.approx(1 / 3)]]]]
    torch.testing.assert_close(attended.context, IMAGE / 3)


def test_any_normaliser_may_share_out():
    assert Halves(2, "sparsemax").attend(IMAGE).weights.tolist() == [[[[1.0, 0.0]]]]
    assert torch.equal(Halves(2, "sparsemax")(IMAGE), IMAGE)


def drawn(scores, allowed):
    sampled = Sampled(torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    return torch.tensor([[[[0.0, 1.0]]]]), sampled


def test_what_a_normaliser_drew_is_handed_on():
    attended = Halves(2, drawn).attend(IMAGE)
    assert torch.equal(attended.context, -IMAGE)
    assert attended.sampled.entropy.item() == 1


def test_a_reduction_divides_the_channels():
    assert reduce_channels("Channel", 64, 16) == 4
    for reduction in (16, 0, -2):
        text = f"Channel needs a reduction that divides its channels, got 24 channels and reduction {reduction}; choose"
        with pytest.raises(ValueError, match=re.escape(text)):
            reduce_channels("Channel", 24, reduction)


def test_the_modules_are_attributes_of_their_folder():
    from regard.attention.visual import Channel, NonLocal

    assert [each.__name__ for each in (Channel, NonLocal)] == ["Channel", "NonLocal"]
