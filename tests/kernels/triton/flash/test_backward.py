import math
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.launch import Plan, StatisticsRequest

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_one_query_and_two_keys_can_be_worked_by_hand():
    """Shares 1/4 and 3/4 of values 4 and 8: ds = p (v - 7) = (-3/4, 3/4), dq = Σ ds k, dk = ds q, dv = p."""
    query, keys = torch.ones(1, 1, 1, 1), torch.tensor([[[[0.0], [math.log(3)]]]])
    values, plan = torch.tensor([[[[4.0], [8.0]]]]), PLAN._replace(bias=torch.zeros(1, 1, 2))
    found = launch.forward(query, keys, values, plan, StatisticsRequest())
    made = launch.backward(torch.ones(1, 1, 1, 1), query, keys, values, found.context, found.lse, plan, True, False)
    assert made.query.item() == pytest.approx(0.75 * math.log(3))
    torch.testing.assert_close(made.keys.flatten(), torch.tensor([-0.75, 0.75]))
    torch.testing.assert_close(made.values.flatten(), torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(made.bias.flatten(), torch.tensor([-0.75, 0.75]))
    assert made.centres.numel() == 0


def test_the_gradient_of_a_bias_is_summed_along_diagonals_of_any_lengths():
    query, keys, values = torch.randn(1, 1, 35, 2), torch.randn(1, 1, 18, 2), torch.randn(1, 1, 18, 3)
    bias, plan = torch.randn(1, 1, 52), PLAN._replace(window=20, offset=-3)
    flow = torch.randn(1, 1, 35, 3)
    found = launch.forward(query, keys, values, plan._replace(bias=bias), StatisticsRequest())
    made = launch.backward(flow, query, keys, values, found.context, found.lse, plan._replace(bias=bias), True, False)
    leaf = bias[0, 0].double().requires_grad_()
    far = torch.arange(18) - torch.arange(35)[:, None]
    scores = (query[0, 0].double() @ keys[0, 0].double().mT + leaf[far + 34]).masked_fill((far + 3).abs() > 20, -torch.inf)
    context = torch.nan_to_num(torch.softmax(scores, -1)) @ values[0, 0].double()
    seen = ((far + 3).abs() <= 20).any(-1)
    (expected,) = torch.autograd.grad(context[seen], leaf, flow[0, 0].double()[seen])
    torch.testing.assert_close(made.bias[0, 0].double(), expected, rtol=1e-4, atol=1e-5)
