import os

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/parity.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.add_norm import launch
from regard.kernels.triton.add_norm.launch import NormArguments, backward, count_multiprocessors, forward, select_tile


def test_rows_are_as_wide_as_the_next_power_of_two_and_wide_ones_come_one_at_a_time():
    assert select_tile(512) == (2, 512, 2)
    assert select_tile(513) == (1, 1024, 2)
    assert select_tile(3) == (64, 16, 2)
    assert select_tile(8192) == (1, 8192, 16)


def test_a_machine_without_a_gpu_counts_as_one_processor():
    assert count_multiprocessors(torch.zeros(1)) == 1


@pytest.mark.parametrize(("rows", "size", "numbers"), [(1, 1, 32), (7, 33, 128), (40, 16, 32)])
def test_any_number_of_rows_of_any_width_will_do(monkeypatch, rows, size, numbers):
    monkeypatch.setattr(launch, "TILE_ELEMENTS", numbers)
    data, flow = torch.randn(rows, size, requires_grad=True), torch.randn(rows, size)
    weight, shift = torch.randn(size, requires_grad=True), torch.randn(size, requires_grad=True)
    expected = F.layer_norm(data, (size,), weight, shift, 1e-2)
    gradients = torch.autograd.grad(expected, (data, weight, shift), flow)
    norm = NormArguments(weight.detach(), shift.detach(), 1e-2)
    went = forward(data.detach(), None, None, norm, False, torch.float32)
    torch.testing.assert_close(went.entered, expected.detach())
    found = backward(went, norm, None, False, None, None, flow)
    assert found.sublayer is None
    for one, other in zip((found.data, found.weight, found.shift), gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_only_what_is_asked_for_is_written():
    data = torch.randn(3, 8)
    went = forward(data, None, None, NormArguments(torch.ones(8), rms=True), True, None)
    assert went.total is data
    assert went.entered is None
    assert went.wide.shape == (3, 8)


def test_rows_that_are_not_kept_have_a_norm_of_nothing_and_let_nothing_back():
    data, flow = torch.randn(3, 8), torch.randn(3, 8)
    norm = NormArguments(torch.ones(8), torch.ones(8), keep=torch.tensor([True, False, True]))
    went = forward(data, None, None, norm, False, torch.float32)
    assert went.entered[1].tolist() == [0] * 8
    torch.testing.assert_close(went.entered[[0, 2]], F.layer_norm(data, (8,))[[0, 2]] + 1)
    found = backward(went, norm, None, False, None, None, flow)
    assert found.data[1].tolist() == [0] * 8
    torch.testing.assert_close(found.shift, flow[[0, 2]].sum(0))
