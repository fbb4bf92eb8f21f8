import math
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.launch import Plan, Selection, StatisticsRequest

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_two_weights_can_be_worked_by_hand():
    query, keys = torch.tensor([[[[7.0], [1.0]]]]), torch.tensor([[[[0.0], [math.log(3)]]]])
    found = launch.compute_weights(query, keys, None, PLAN, Selection(torch.tensor([1])))
    torch.testing.assert_close(found.flatten(), torch.tensor([0.25, 0.75]))


def test_an_additive_score_can_be_worked_by_hand():
    query, keys = torch.zeros(1, 1, 1, 1), torch.tensor([[[[0.0], [math.atanh(0.5)]]]])
    found = launch.compute_weights(query, keys, torch.tensor([[2 * math.log(3)]]), PLAN, Selection(torch.tensor([0])))
    torch.testing.assert_close(found.flatten(), torch.tensor([0.25, 0.75]))


def test_a_known_log_sum_exp_gives_the_same_weights():
    query, keys = torch.randn(2, 2, 3, 4), torch.randn(2, 1, 20, 4)
    chosen = Selection(torch.tensor([2, 0]), torch.tensor([1]))
    lse = launch.forward(query, keys, keys, PLAN, StatisticsRequest()).lse
    found = [launch.compute_weights(query, keys, None, PLAN, chosen._replace(lse=each)) for each in (None, lse)]
    torch.testing.assert_close(*found)
    torch.testing.assert_close(found[0].sum(-1), torch.ones(2, 1, 2))
