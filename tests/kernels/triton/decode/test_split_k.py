import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decode.py checks on a GPU", allow_module_level=True)

import math

from regard.kernels.triton.decode import launch
from regard.kernels.triton.flash.arguments import Plan

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_one_query_and_keys_in_three_parts_can_be_worked_by_hand(monkeypatch):
    """Of 33 keys two score log 1 and log 3 and the others nothing: shares 1/4 and 3/4, in the first part and the last."""
    monkeypatch.setattr(launch, "count_splits", lambda keys, plan: 3)
    keys, values = torch.full((1, 1, 33, 1), -1e4), torch.full((1, 1, 33, 1), 1e9)
    keys[0, 0, [0, 32], 0] = torch.tensor([0.0, math.log(3)])
    values[0, 0, [0, 32], 0] = torch.tensor([4.0, 8.0])
    found = launch.run_step(torch.ones(1, 1, 1, 1), keys, values, PLAN, wants_weights=True)
    assert found.context.item() == pytest.approx(7)
    assert found.weights[0, 0, 0, [0, 1, 32]].tolist() == pytest.approx([0.25, 0, 0.75])


def test_heads_that_share_keys_read_by_their_own_queries():
    """Two heads of opposite mind: each takes what the other leaves."""
    query, keys = torch.tensor([[[[100.0]], [[-100.0]]]]), torch.tensor([[[[1.0], [-1.0]]]])
    found = launch.run_step(query, keys, torch.tensor([[[[3.0], [5.0]]]]), PLAN, wants_weights=False)
    assert found.context.flatten().tolist() == [3.0, 5.0]
    assert found.weights is None
