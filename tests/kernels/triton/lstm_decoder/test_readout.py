import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/recurrent.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.lstm_decoder.readout import launch_readout, launch_readout_backward


def test_it_bends_a_sum_into_some_columns_and_leaves_the_others():
    wide = torch.full((2, 5), 7.0)
    launch_readout(torch.tensor([[0.5, -1.0, 0.0], [0.0, 0.0, 20.0]]), torch.tensor([0.5, 1.0, 0.0]), wide[:, :3])
    torch.testing.assert_close(wide[:, :3], torch.tensor([[1.0, 0.0, 0.0], [0.5, 1.0, 20.0]]).tanh())
    assert (wide[:, 3:] == 7).all()


def test_its_way_back_is_the_slope_of_tanh_times_both_gradients():
    sums = torch.randn(2, 3, requires_grad=True)
    read, flows, d_sums = sums.tanh(), torch.randn(2, 2, 5), torch.empty(2, 3)
    launch_readout_backward(read.detach(), flows[0, :, :3], flows[1, :, 2:], d_sums)
    expected = torch.autograd.grad(read, sums, flows[0, :, :3] + flows[1, :, 2:])[0]
    torch.testing.assert_close(d_sums, expected, rtol=1e-4, atol=1e-6)
