import ctypes

import pytest
import torch
from torch import nn

from regard.decoding.engines.cpp.build import load_library
from regard.decoding.engines.cpp.matrices import (
    QUADS,
    build_linear,
    build_matrix,
    build_norm,
    find_address,
    make_absent_matrix,
    pack_panels,
)

PUT, ADD, RELU = range(3)


def product(made, data, found, then=PUT, threads=1):
    load_library().regard_product(data.data_ptr(), len(data), ctypes.byref(made), found.data_ptr(), then, threads)
    return found


def some(rows, size, out):
    generator = torch.Generator().manual_seed(rows + size + out)
    return (torch.randn(each, generator=generator) for each in ((rows, size), (out, size), (out,)))


@pytest.mark.parametrize("rows", [1, 2, 5, 7, 12, 13, 40])
@pytest.mark.parametrize(("size", "out"), [(1, 1), (5, 3), (64, 32), (33, 45), (16, 300)])
def test_a_product_is_the_product_whatever_does_not_fill_a_panel(rows, size, out):
    data, weight, bias = some(rows, size, out)
    found = product(build_matrix(weight, bias), data, torch.empty(rows, out))
    torch.testing.assert_close(found, data @ weight.mT + bias, atol=1e-5, rtol=1e-5)


def test_what_is_found_is_added_or_bent_and_shared_by_threads():
    data, weight, bias = some(70, 128, 100)
    right, before = data @ weight.mT + bias, torch.full((70, 100), 3.0)
    torch.testing.assert_close(
        product(build_matrix(weight, bias), data, before.clone(), ADD), right + 3, atol=1e-4, rtol=1e-5
    )
    bent = product(build_matrix(weight, bias), data, before.clone(), RELU, threads=2)
    torch.testing.assert_close(bent, right.relu(), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, 13])
@pytest.mark.parametrize(("size", "out"), [(4, 32), (7, 45), (66, 100)])
def test_in_8_bits_it_is_the_product_of_what_was_rounded(rows, size, out):
    data, weight, bias = some(rows, size, out)
    scales, shares = weight.abs().amax(1, keepdim=True) / 127, data.abs().amax(1, keepdim=True) / 127
    right = (data / shares).round() * shares @ ((weight / scales).round() * scales).mT + bias
    found = product(build_matrix(weight, bias, "int8"), data, torch.empty(rows, out))
    torch.testing.assert_close(found, right, atol=1e-4, rtol=1e-4)


def test_a_row_of_zeros_in_8_bits_gives_the_bias():
    _, weight, bias = some(1, 6, 5)
    weight[2] = 0.0
    found = product(build_matrix(weight, bias, "int8"), torch.zeros(1, 6), torch.empty(1, 5))
    torch.testing.assert_close(found[0], bias)


def test_panels_hold_neighbouring_columns_row_by_row():
    wide = load_library().regard_panel()
    laid = pack_panels(torch.arange(2.0 * wide + 2).view(wide + 1, 2))
    assert laid.shape == (2, 2, wide)
    assert laid[0, 1, :3].tolist() == [1.0, 3.0, 5.0]
    assert laid[1, :, :2].tolist() == [[2.0 * wide, 0.0], [2.0 * wide + 1, 0.0]]


def test_layers_that_read_the_same_stand_side_by_side():
    first, second = nn.Linear(4, 3), nn.Linear(4, 2, bias=False)
    data = torch.randn(2, 4)
    made = build_linear([first, second])
    right = torch.cat((first(data), second(data)), 1)
    torch.testing.assert_close(product(made, data, torch.empty(2, 5)), right.detach(), atol=1e-6, rtol=1e-5)


def test_a_norm_is_pointed_at_and_none_is_none():
    made, without = build_norm(nn.LayerNorm(3, eps=0.5)), build_norm(nn.LayerNorm(3, elementwise_affine=False))
    assert made.weight == find_address(made.references[0])
    assert made.epsilon == 0.5
    assert [each.tolist() for each in without.references] == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    assert build_norm(nn.Identity()).weight is None
    assert make_absent_matrix().out == 0
    assert find_address(None) is None


def test_8_bits_are_multiplied_by_fours():
    made = build_matrix(torch.ones(1, 5), torch.zeros(1), "int8")
    assert made.references[0].shape == (1, 2, load_library().regard_panel(), QUADS)


def test_another_precision_is_refused():
    with pytest.raises(ValueError, match="precision needs to be one of float32, int8, got 'bf16'"):
        build_matrix(torch.ones(1, 1), torch.zeros(1), "bf16")


@pytest.mark.parametrize("then", [PUT, ADD, RELU])
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_reaches_all_that_is_found_of_its_row_and_nothing_else(precision, then, broken):
    data, weight, bias = some(5, 37, 45)
    found, before = (torch.zeros(5, 45) for _ in range(2))
    product(build_matrix(weight, bias, precision), data, before, then)
    data[3, 35] = broken
    product(build_matrix(weight, bias, precision), data, found, then)
    rows = [0, 1, 2, 4]
    assert torch.equal(found[rows], before[rows])
    if precision == "int8" or broken != broken:
        assert found[3].isnan().all()
