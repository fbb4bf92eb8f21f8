import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import arguments, launch
from regard.kernels.triton.flash.launch import StatisticsRequest


@pytest.fixture(params=["tf32", "ieee"], ids=["four hands", "one"], autouse=True)
def hands(request, monkeypatch):
    """As where tensor cores multiply, and where they do not: the interpreter multiplies alike."""
    monkeypatch.setattr(arguments, "select_dot_precision", lambda dtype: request.param)


def test_the_best_keys_are_those_of_the_formula_and_of_equals_the_first(plan, whole, formula):
    data = formula.sides(plan, whole)
    found = launch.forward(*data, plan, StatisticsRequest(top=4))
    weights, keys = formula.best(formula.weights(plan, data), 4)
    torch.testing.assert_close(found.best.double(), weights, rtol=1e-5, atol=1e-5)
    seen = weights > 0
    assert torch.equal(found.best_keys[seen], keys[seen])
    assert (found.best.diff(dim=-1) <= 0).all()


def test_as_many_as_there_are_can_be_asked_for_and_none_comes_twice(formula):
    data = torch.zeros(1, 1, 20, 1)
    found = launch.forward(data[:, :, :1], data, data, formula.plain, StatisticsRequest(top=16))
    assert found.best_keys.flatten().tolist() == list(range(16))
    torch.testing.assert_close(found.best, torch.full((1, 1, 1, 16), 1 / 20))


def test_the_first_of_them_is_the_peak(formula):
    data = formula.sides(formula.plain, whole=True)
    found = launch.forward(*data, formula.plain, StatisticsRequest(peak=True, top=2))
    assert torch.equal(found.best_keys[..., 0], found.argmax)
    torch.testing.assert_close(found.best[..., 0], found.measured[1])
