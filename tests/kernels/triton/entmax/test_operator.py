import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/simplex.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.entmax.launch import Alpha
from regard.kernels.triton.entmax.operator import attend, sparse_pass
from regard.kernels.triton.flash.arguments import Plan

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


@pytest.mark.unhooked
@pytest.mark.parametrize("learned", [True, False])
def test_what_it_promises_the_compiler_about_shapes_is_what_it_gives(learned):
    query, keys, values = (torch.randn(1, 2, count, 4, requires_grad=True) for count in (3, 5, 5))
    keep = torch.ones(1, 5, dtype=torch.bool)
    alphas = torch.tensor([1.2, 1.7], requires_grad=True) if learned else None
    told = (keep, None, None, None, 2, -1, True, 0.5, 0.0, [16, 16, 4, 1], 1.5)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(sparse_pass, (query, keys, values, alphas, *told), test_utils=tests)


@pytest.mark.unhooked
def test_it_stays_one_operation_in_a_compiled_function():
    query, keys, values = (torch.randn(1, 1, count, 4, requires_grad=True) for count in (3, 5, 5))

    def both(query, keys, values):
        return attend(query, keys, values, PLAN, Alpha(2.0)) * 2

    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    found, expected = compiled(query, keys, values), both(query, keys, values)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.sum(), (query, keys, values)), torch.autograd.grad(expected.sum(), (query, keys, values))
    )
