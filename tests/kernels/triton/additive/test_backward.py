import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

import triton
import triton.language as tl

from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.backward import pack_pair


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


@triton.jit
def words(even, odd, held, COUNT: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, COUNT)
    pairs = pack_pair(tl.load(even + at, mask=at < SIZE), tl.load(odd + at, mask=at < SIZE))
    tl.store(held + at, pairs, mask=at < SIZE)


def test_the_words_of_two_slopes_are_no_further_off_than_bfloat16():
    even, odd = torch.randn(2, 1000), torch.cat([torch.randn(1, 1000), torch.zeros(1, 1000)])
    even[0, :10], odd[0, 20:24] = 0.0, torch.tensor([1e-42, -1e-42, 1e30, -1e30])
    held = torch.empty(2, 1000, dtype=torch.int32)
    words[(1, 1, 1)](even, odd, held, COUNT=2048, SIZE=2000)
    first, second = (held << 16).view(torch.float32), held.view(torch.float32)
    assert ((first - even).abs() <= even.abs() * 2**-7).all()  # the interpreter cuts where a GPU rounds
    assert ((second - odd).abs() <= odd.abs() * 2**-8 + 1e-38).all()
    assert (second - odd)[:, 24:].abs().mean() < 1.1 * (odd.bfloat16() - odd)[:, 24:].abs().mean()


def test_what_is_no_number_is_none_in_a_word_whatever_lies_beside_it():
    """A GPU's own NaN has all bits set, which arithmetic of whole numbers would carry over."""
    odd = torch.tensor([0x7FFFFFFF, -1, 0x7FC00000, 0x7F800000, -0x800000], dtype=torch.int32).view(torch.float32)
    even = torch.tensor([0.0, 1.5, -1.5, float("nan"), 3e38])
    held = torch.empty(25, dtype=torch.int32)
    words[(1, 1, 1)](even.repeat(5), odd.repeat_interleave(5), held, COUNT=32, SIZE=25)
    assert held.view(torch.float32).isnan().all()
