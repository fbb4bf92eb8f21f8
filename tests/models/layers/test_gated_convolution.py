import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.models.layers.gated_convolution import SQRT_HALF, GatedConvolution, initialise_layer


def test_one_half_opens_and_closes_the_other():
    gated = GatedConvolution(1, kernel=2)
    gated.convolution.weight.data = torch.tensor([[[1.0, 2.0]], [[0.0, 1.0]]])  # A = x_{i-1} + 2 x_i, B = x_i
    data = torch.tensor([[[3.0], [1.0], [-1.0]]])
    expected = [[5 / (1 + math.exp(-1))], [-1 / (1 + math.exp(1))]]
    assert_close(gated(data), torch.tensor([expected]))


@pytest.mark.parametrize("kernel", [1, 3, 4])
def test_as_many_places_are_lost_as_the_kernel_has_beyond_one(kernel):
    assert GatedConvolution(4, kernel)(torch.randn(2, 6, 4)).shape == (2, 7 - kernel, 4)


def test_a_convolution_sees_something():
    with pytest.raises(ValueError, match="a convolution needs a kernel of 1 place or more, got 0"):
        GatedConvolution(4, 0)


@pytest.mark.parametrize(("gain", "dropout"), [(1.0, 0.0), (3.0, 0.0), (3.0, 0.5)])
def test_a_start_has_the_variance_that_is_asked_for_and_no_bias(gain, dropout):
    linear = initialise_layer(nn.Linear(100, 400), gain, dropout)
    assert float(linear.weight.detach().var()) == pytest.approx(gain * (1 - dropout) / 100, rel=0.05)
    assert linear.bias.abs().sum() == 0
    convolution = initialise_layer(nn.Conv1d(50, 400, 2), gain, dropout)
    assert float(convolution.weight.detach().var()) == pytest.approx(gain * (1 - dropout) / 100, rel=0.05)


def test_a_layer_without_a_bias_may_be_started_too():
    assert initialise_layer(nn.Linear(4, 2, bias=False)).bias is None


def test_variance_neither_dies_nor_explodes_through_twenty_layers():
    data = torch.randn(8, 50, 64)
    for _ in range(20):
        data = (GatedConvolution(64, 3)(nn.functional.pad(data, (0, 0, 1, 1))) + data).detach() * SQRT_HALF
    assert 0.5 < data.var() < 2
