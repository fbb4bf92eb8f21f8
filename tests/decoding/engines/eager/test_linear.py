import pytest
import torch
from torch import nn

from regard.decoding.engines.eager.linear import Buffers, prepare_linear, prepare_matrix
from regard.decoding.logprobs import UndistributedError


def test_layers_side_by_side_are_one_matrix():
    layers, data = [nn.Linear(5, 3), nn.Linear(5, 4, bias=False)], torch.randn(6, 5)
    with torch.no_grad():
        torch.testing.assert_close(prepare_linear(layers)(data), torch.cat([layer(data) for layer in layers], dim=1))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_in_a_room_or_onto_something_it_is_the_same_product(precision):
    made, rooms, data, before = prepare_linear(nn.Linear(5, 3), precision), Buffers(), torch.randn(4, 5), torch.randn(4, 3)
    with torch.no_grad():
        expected = made(data)
        torch.testing.assert_close(made.within(rooms, data), expected)
        there = before.clone()
        assert made.onto(there, data) is there
        torch.testing.assert_close(there, before + expected)


def test_int8_is_as_near_as_eight_bits_allow():
    torch.manual_seed(0)
    layer, data = nn.Linear(64, 32), torch.randn(10, 64)
    with torch.no_grad():
        error = (prepare_linear(layer, "int8")(data) - layer(data)).abs().max()
    bound = 64 * (
        layer.weight.abs().max() / 254 * data.abs().max() + (data.max() - data.min()) / 510 * layer.weight.abs().max()
    )
    assert 0 < error < bound


def test_a_row_of_zeros_stays_zero_in_int8():
    weight = torch.zeros(3, 8)
    weight[1] = 1.0
    found = prepare_matrix(weight, torch.tensor([0.0, 0.0, 2.0]), "int8")(torch.ones(1, 8))
    torch.testing.assert_close(found, torch.tensor([[0.0, 8.0, 2.0]]), atol=0.1, rtol=0)


def test_int8_leaves_the_chosen_kernels_as_they_were():
    before = torch.backends.quantized.engine
    prepare_linear(nn.Linear(4, 4), "int8")
    assert torch.backends.quantized.engine == before


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="precision needs to be one of float32, int8, got 'int4'"):
        prepare_linear(nn.Linear(2, 2), "int4")


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_rounding_finds_numbers_that_are_not_finite_which_its_kernels_would_lose(broken):
    layer, data = nn.Linear(64, 8), torch.randn(4, 64)
    data[2, 17] = broken
    with pytest.raises(UndistributedError, match="look for NaN in the model's parameters and in its source"):
        prepare_linear(layer, "int8")(data)


def test_rounding_takes_numbers_whose_sum_is_too_large():
    data = torch.full((2, 64), 1e38)
    assert prepare_linear(nn.Linear(64, 8), "int8")(data).shape == (2, 8)
