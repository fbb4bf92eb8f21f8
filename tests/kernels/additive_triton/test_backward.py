import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import operator


@pytest.mark.parametrize("queries", [1, 3])
def test_the_gradient_of_one_hidden_unit_is_that_of_the_formula(queries):
    leaves = [torch.randn(1, 1, time, 1, requires_grad=True) for time in (queries, 2, 2)] + [
        torch.ones(1, 1, requires_grad=True)
    ]
    q, k, values, v = (each.detach().double().requires_grad_() for each in leaves)
    plain = torch.softmax(v * torch.tanh(q + k.mT), -1) @ values
    expected = torch.autograd.grad(plain.square().sum(), (q, k, values, v))
    context, _ = operator.attention(*leaves)
    for found, right in zip(torch.autograd.grad(context.square().sum(), leaves), expected, strict=True):
        torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-6)


def test_one_key_that_has_all_the_weight_passes_nothing_on():
    leaves = [torch.randn(1, 1, time, 3, requires_grad=True) for time in (2, 1, 1)] + [torch.ones(1, 3, requires_grad=True)]
    found = torch.autograd.grad(operator.attention(*leaves)[0].sum(), leaves)
    assert [each.eq(0).all().item() for each in found] == [True, True, False, True]
