import os

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/recurrent.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.lstm_decoder import cell as module
from regard.kernels.triton.lstm_decoder.cell import launch_cell, launch_cell_backward
from regard.models.layers.cells import lstm_cell


def test_a_closed_gate_forgets_and_an_open_one_remembers():
    far = 40.0
    gates = torch.tensor([[-far, -far, far, far], [-far, far, far, far]])  # i f g o
    before, left, after = torch.full((2, 1), 3.0), torch.empty(2, 4), torch.empty(2, 1)
    top, beside = torch.empty(2, 1), torch.empty(2, 1)
    launch_cell(gates, torch.zeros(2, 4), before, left, after, top, beside)
    assert after.flatten().tolist() == pytest.approx([0, 3])
    assert left[0].tolist() == pytest.approx([0, 0, 1, 1])
    assert top.flatten().tolist() == pytest.approx([0, torch.tensor(3.0).tanh().item()])
    assert torch.equal(top, beside)


@pytest.mark.parametrize("size", [3, 8])
def test_a_step_and_its_way_back_are_those_of_the_formula(monkeypatch, size):
    monkeypatch.setattr(module, "BLOCK", 4)
    rows = 2
    sums, given, before = torch.randn(rows, 4 * size), torch.randn(rows, 4 * size), torch.randn(rows, size)
    leaves = [(sums + given).requires_grad_(), before.clone().requires_grad_()]
    hidden, cell = lstm_cell(leaves[0], (torch.zeros(rows, size), leaves[1]))
    gates, after, wide = torch.empty_like(sums), torch.empty_like(before), torch.full((rows, size + 2), 7.0)
    beside = torch.empty(rows, size)
    launch_cell(sums, given, before, gates, after, wide[:, 2:], beside)
    torch.testing.assert_close(wide[:, 2:], hidden.detach())
    assert (wide[:, :2] == 7).all()
    torch.testing.assert_close((beside, after), (hidden.detach(), cell.detach()))
    flows, d_cell = torch.randn(3, rows, size), torch.randn(rows, size)
    expected = torch.autograd.grad((hidden, cell), leaves, (flows.sum(0), d_cell))
    d_gates = torch.empty_like(sums)
    launch_cell_backward(gates, before, after, *flows.unbind(0), d_cell, d_gates)
    torch.testing.assert_close((d_gates, d_cell), expected)


def test_the_gates_it_leaves_are_bent_already():
    sums = torch.randn(1, 8)
    gates = torch.empty(1, 8)
    launch_cell(sums, torch.zeros(1, 8), torch.zeros(1, 2), gates, torch.empty(1, 2), torch.empty(1, 2), torch.empty(1, 2))
    i, f, g, o = sums.chunk(4, dim=1)
    torch.testing.assert_close(gates, torch.cat((i.sigmoid(), f.sigmoid(), F.tanh(g), o.sigmoid()), dim=1))
