import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/recurrent.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.lstm_decoder.steps import run_backward, run_forward
from regard.models.layers.cells import lstm_cell

TIME, ROWS, FED, SIZE, KEYS, CONTEXT = 3, 2, 5, 4, 6, 7


def inputs():
    shapes = {
        "projected": (TIME, ROWS, 4 * SIZE),
        "weight": (4 * SIZE, FED + SIZE),
        "readout": (FED, SIZE + CONTEXT),
        "bias": (FED,),
        "keys": (ROWS, KEYS, SIZE),
        "values": (ROWS, KEYS, CONTEXT),
        "first": (ROWS, FED + SIZE),
        "cell": (ROWS, SIZE),
    }
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def one_by_one(projected, weight, readout, bias, keys, values, first, cell, scale):
    """went and found of steps.Kept, and the last cell, by plain products."""
    went, found = [first], []
    for t in range(TIME):
        hidden, cell = lstm_cell(projected[t] + went[-1] @ weight.mT, (went[-1][:, FED:], cell))
        shares = (scale * torch.einsum("bd,bsd->bs", hidden, keys)).softmax(-1)
        found.append(torch.cat((hidden, torch.einsum("bs,bsv->bv", shares, values)), 1))
        went.append(torch.cat((torch.tanh(found[-1] @ readout.mT + bias), hidden), 1))
    return torch.stack(went), torch.stack(found), cell


def test_steps_are_those_of_the_formula_and_so_is_the_way_back():
    given = inputs()
    leaves = {name: each.clone().requires_grad_() for name, each in given.items()}
    expected = one_by_one(**leaves, scale=0.5)
    kept = run_forward(**given, keep=None, scale=0.5)
    torch.testing.assert_close((kept.inputs, kept.outputs, kept.cells[-1]), tuple(each.detach() for each in expected))
    flows = [torch.randn_like(each) for each in expected]
    wanted = torch.autograd.grad(expected, [leaves[name] for name in ("projected", "first", "cell")], flows)
    sides = (given[name] for name in ("weight", "readout", "keys", "values"))
    found = run_backward(kept, *sides, None, 0.5, *flows[:2], flows[2].clone())
    torch.testing.assert_close((found.gates, found.first, found.cell), wanted, rtol=1e-4, atol=1e-5)


def test_a_step_that_is_left_out_changes_nothing_before_it():
    given = inputs()
    whole = run_forward(**given, keep=None, scale=1.0)
    short = run_forward(**(given | {"projected": given["projected"][:2].contiguous()}), keep=None, scale=1.0)
    assert torch.equal(short.inputs, whole.inputs[:3])
    assert torch.equal(short.outputs, whole.outputs[:2])
