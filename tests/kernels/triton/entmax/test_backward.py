import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/simplex.py checks on a GPU", allow_module_level=True)

from regard.attention.normalise.entmax import Entmax
from regard.kernels.triton.entmax import launch
from regard.kernels.triton.entmax.launch import Alpha
from regard.kernels.triton.flash.arguments import Plan

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_one_query_and_three_keys_can_be_worked_by_hand():
    """Shares 1/4, 3/4 and 0 of values 4, 8 and 100: ds = (4 - 6, 8 - 6, 0), as 6 is the mean over the support."""
    query, keys = torch.ones(1, 1, 1, 1), torch.tensor([[[[0.0], [0.5], [-3.0]]]])
    values = torch.tensor([[[[4.0], [8.0], [100.0]]]])
    edges = launch.forward(query, keys, values, PLAN, Alpha(2.0)).edges
    made = launch.backward(torch.ones(1, 1, 1, 1), query, keys, values, edges, PLAN, Alpha(2.0))
    torch.testing.assert_close(made.keys.flatten(), torch.tensor([-2.0, 2.0, 0.0]))
    assert made.query.item() == pytest.approx(2 * 0.5)
    torch.testing.assert_close(made.values.flatten(), torch.tensor([0.25, 0.75, 0.0]))
    assert made.alphas.numel() == 0


def test_the_gradient_of_alpha_is_what_a_small_change_of_it_makes():
    query, keys, values = torch.randn(1, 1, 1, 3), torch.randn(1, 1, 20, 3), torch.randn(1, 1, 20, 2)
    edges = launch.forward(query, keys, values, PLAN, Alpha(1.5, torch.tensor([1.4]))).edges
    bend = Alpha(1.5, torch.tensor([1.4]))
    made = launch.backward(torch.ones(1, 1, 1, 2), query, keys, values, edges, PLAN, bend)
    scores = query.double() @ keys.double().mT
    above, below = ((Entmax(alpha)(scores) @ values.double()).sum() for alpha in (1.4 + 1e-5, 1.4 - 1e-5))
    assert made.alphas.item() == pytest.approx((above - below).item() / 2e-5, rel=1e-3, abs=1e-4)
