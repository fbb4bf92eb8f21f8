import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.launch import StatisticsRequest


def test_what_keys_receive_is_what_the_formula_says(plan, whole, formula):
    data = formula.sides(plan, whole)
    found = launch.forward(*data, plan, StatisticsRequest(received=True))
    torch.testing.assert_close(found.received.double(), formula.weights(plan, data).sum(2), rtol=1e-5, atol=1e-5)


def test_what_keys_would_receive_evenly_is_what_the_formula_says(plan, formula, monkeypatch):
    monkeypatch.setattr(launch, "MASK_TILE", 16)
    data, seen = formula.sides(plan, whole=False), formula.seen(plan)
    found = launch.forward(*data, plan, StatisticsRequest(uniform=True))
    even = seen / seen.sum(-1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(found.uniform, even.sum(2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 3], ids=["a mask for all heads", "a mask for each head"])
def test_all_heads_have_what_a_mask_leaves_them(heads, formula):
    query, keys = torch.randn(2, 3, 4, 5), torch.randn(2, 1, 7, 5)
    mask = torch.rand(1, heads, 4, 7) > 0.3
    found = launch.forward(query, keys, keys, formula.plain._replace(mask=mask), StatisticsRequest(uniform=True)).uniform
    even = mask / mask.sum(-1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(found, even.sum(2).expand(2, 3, 7), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow")
def test_keys_that_are_hidden_receive_nothing_however_low_the_scores_of_the_others(formula):
    """A score of 0 for what is not there would be a weight of infinity beside scores of minus 10,000."""
    keys = torch.full((1, 1, 20, 1), -1e4)
    plan = formula.plain._replace(keep=torch.arange(20)[None] < 3, scale=1.0)
    found = launch.forward(torch.ones(1, 1, 5, 1), keys, keys, plan, StatisticsRequest(received=True)).received.flatten()
    torch.testing.assert_close(found, torch.tensor([5 / 3] * 3 + [0.0] * 17))
