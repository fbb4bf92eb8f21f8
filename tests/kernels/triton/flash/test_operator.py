import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash.launch import Plan, StatisticsRequest
from regard.kernels.triton.flash.launch_window_sort import compute_bin_width, sort_queries
from regard.kernels.triton.flash.operator import attend, forward_operator

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


@pytest.mark.parametrize("learns", [False, True])
def test_where_nothing_is_asked_for_there_is_nothing_but_context_and_log_sum_exp(learns):
    query, keys, values = (torch.randn(1, 2, 5, 3, requires_grad=learns) for _ in range(3))
    found, asked = (
        attend(query, keys, values, PLAN, each) for each in (StatisticsRequest(), StatisticsRequest(entropy=True))
    )
    assert torch.equal(found.context, asked.context)
    assert torch.equal(found.lse, asked.lse)
    assert found.context.requires_grad == learns
    assert not any(each.numel() or each.requires_grad for each in found[2:])
    assert not found.lse.requires_grad


def test_only_the_context_has_a_gradient():
    query, keys, values = (torch.randn(1, 1, 2, 3, requires_grad=True) for _ in range(3))
    found = attend(query, keys, values, PLAN, StatisticsRequest(entropy=True))
    assert found.context.requires_grad
    assert not found.lse.requires_grad
    assert not found.measured.requires_grad


class Stop(torch.autograd.Function):
    """Reads something, and passes no gradient on."""

    @staticmethod
    def forward(ctx, data):
        return data.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


def test_where_nothing_flows_into_the_context_nothing_flows_on():
    query, keys, values = (torch.randn(1, 1, 2, 3, requires_grad=True) for _ in range(3))
    read = Stop.apply(attend(query, keys, values, PLAN, StatisticsRequest()).context)
    (read.sum() + query.sum()).backward()
    assert torch.equal(query.grad, torch.ones_like(query))
    assert keys.grad is values.grad is None


@pytest.mark.unhooked
def test_what_it_promises_the_compiler_about_shapes_is_what_it_gives():
    query, keys, values = (torch.randn(1, 1, count, 4, requires_grad=True) for count in (3, 5, 5))
    bias, centres = torch.randn(1, 1, 7, requires_grad=True), torch.rand(1, 3, requires_grad=True)
    placed = {
        "centres": centres,
        "bin_width": compute_bin_width(5),
        **sort_queries(centres, 5)._asdict(),
        "width": 2.0,
        "gaussian": 1,
    }
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    for plan in (PLAN._replace(bias=bias, causal=True), PLAN._replace(**placed)):
        torch.library.opcheck(forward_operator, (query, keys, values, *plan, [1, 1, 1, 1, 1, 2]), test_utils=tests)


def test_a_bias_beside_placed_windows_is_refused_a_gradient():
    query, keys, values = (torch.randn(1, 1, count, 4, requires_grad=True) for count in (3, 5, 5))
    bias, centres = torch.randn(1, 1, 7, requires_grad=True), torch.rand(1, 3)
    placed = {"centres": centres, "bin_width": compute_bin_width(5), **sort_queries(centres, 5)._asdict(), "width": 2.0}
    found = attend(query, keys, values, PLAN._replace(bias=bias, **placed), StatisticsRequest())
    with pytest.raises(ValueError, match="no gradient beside windows that queries place"):
        found.context.sum().backward()


@pytest.mark.unhooked
def test_compiled_it_goes_back_without_bias_and_centres():
    leaves = [torch.randn(1, 2, count, 4, requires_grad=True) for count in (3, 5, 5)]

    def run(query, keys, values):
        return attend(query, keys, values, PLAN, StatisticsRequest()).context.square().sum()

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    found, expected = (torch.autograd.grad(each(*leaves), leaves) for each in (compiled, run))
    torch.testing.assert_close(found, expected)
