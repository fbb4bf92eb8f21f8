"""The norm of kept places in Triton's interpreter, beside the same in double precision, one operation after the other."""

import copy
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/norm.py checks on a GPU", allow_module_level=True)

from regard.attention import masked_norm
from regard.attention.masked_norm import BatchNorm, GroupNorm, is_fused
from regard.attention.masked_pool import zero_padding
from regard.kernels.triton.masked_norm import operator
from regard.kernels.triton.masked_norm.operator import Plan, apply_norm

SHAPES = [(2, 8, 5, 7), (1, 24, 3, 5), (3, 6, 1, 1), (2, 1, 4, 4)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Programs of few numbers, so that even the smallest map needs several, and few of them are put together at once."""
    monkeypatch.setattr(operator, "TILE_ELEMENTS", 64)
    monkeypatch.setattr(operator, "MERGE_BLOCK", 2)
    monkeypatch.setattr(operator, "CHANNEL_MERGE", 4)
    monkeypatch.setattr(operator, "MANY", 4)
    monkeypatch.setattr(masked_norm, "DEVICES", ("cuda", "cpu"))


def kept(batch: int, height: int, width: int) -> torch.Tensor:
    """Maps of different sizes in one batch, the first as large as may be."""
    rows = torch.arange(batch)[:, None]
    tall, wide = (height - rows).clamp_min(1), (width - 2 * rows).clamp_min(1)
    return (torch.arange(height) < tall)[:, :, None] & (torch.arange(width) < wide)[:, None, :]


def outcome(norm: GroupNorm | BatchNorm, image, keep, rectify, around, dtype):
    """What comes out at the kept places, and every gradient."""
    norm = copy.deepcopy(norm).to(dtype)
    leaves = [each.detach().to(dtype).requires_grad_() for each in (image, *([] if around is None else [around]))]
    found = norm(leaves[0], keep, rectify=rectify, residual=leaves[1] if around is not None else None)
    flow = torch.arange(found.numel(), dtype=dtype).view(found.shape).cos()
    found = zero_padding(found, keep)
    return [found.detach(), *torch.autograd.grad(found, [*leaves, norm.weight, norm.bias], flow)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("rectify", "beside"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", [GroupNorm, BatchNorm])
def test_it_is_the_norm_of_the_kept_places_with_every_gradient(shape, rectify, beside, last, kind):
    image, around = 3 + 2 * torch.randn(shape), torch.randn(shape)
    if last:
        image = image.contiguous(memory_format=torch.channels_last)
    keep, norm = kept(shape[0], *shape[2:]), kind(shape[1])
    for each in norm.parameters():
        torch.nn.init.normal_(each)
    given = image, keep, rectify, around if beside else None
    for one, other in zip(outcome(norm, *given, torch.float32), outcome(norm, *given, torch.float64), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_double_precision_is_left_to_the_operations():
    assert not is_fused(torch.zeros(1, 8, 2, 2, dtype=torch.float64), torch.ones(8, dtype=torch.float64))
    assert is_fused(torch.zeros(1, 8, 2, 2), torch.ones(8))


def test_what_a_batch_was_normed_by_is_used_later(monkeypatch):
    image, keep = 3 + 2 * torch.randn(2, 10, 5, 7), kept(2, 5, 7)
    norms = BatchNorm(10), BatchNorm(10)
    norms[0](image, keep)
    monkeypatch.setattr(masked_norm, "DEVICES", ("cuda",))
    norms[1](image, keep)
    for one, other in zip(norms[0].buffers(), norms[1].buffers(), strict=True):
        torch.testing.assert_close(one, other)
    assert norms[0].num_batches_tracked == 1


def test_what_stands_outside_is_never_read_and_comes_out_as_nothing():
    image, keep = torch.randn(2, 8, 3, 4), kept(2, 3, 4)
    clean = apply_norm(image, keep, torch.ones(8), torch.full((8,), 0.5), 1, 1e-5).image
    poisoned = image.masked_fill(~keep[:, None], torch.nan).requires_grad_()
    found = apply_norm(poisoned, keep, torch.ones(8), torch.full((8,), 0.5), 1, 1e-5).image
    assert torch.equal(found, clean)
    assert not found[~keep[:, None].expand_as(found)].any()
    found.square().sum().backward()
    assert poisoned.grad.isfinite().all()


def test_a_map_of_which_nothing_is_kept_comes_out_as_nothing():
    found = apply_norm(
        torch.randn(1, 4, 2, 2), torch.zeros(1, 2, 2, dtype=torch.bool), torch.ones(4), torch.ones(4), 1, 1e-5
    ).image
    assert torch.equal(found, torch.zeros(1, 4, 2, 2))


def test_a_mean_far_from_nothing_costs_no_digits():
    image, keep = 1e4 + torch.randn(1, 8, 8, 8), torch.ones(1, 8, 8, dtype=torch.bool)
    found = apply_norm(image, keep, torch.ones(8), torch.zeros(8), 1, 1e-5).image
    wanted = torch.nn.functional.group_norm(image.double(), 1)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-3)


def test_half_precision_comes_out_as_it_came_in():
    image, keep = torch.randn(2, 8, 3, 5), kept(2, 3, 5)
    found = apply_norm(image.bfloat16(), keep, torch.ones(8), torch.zeros(8), 1, 1e-5).image
    assert found.dtype == torch.bfloat16
    wanted = zero_padding(torch.nn.functional.group_norm(image[:1].bfloat16().float(), 1), keep[:1])
    torch.testing.assert_close(found[:1].float(), wanted, rtol=1e-2, atol=1e-2)


def test_what_comes_out_lies_in_memory_as_what_went_in():
    image = torch.randn(2, 8, 3, 5).contiguous(memory_format=torch.channels_last)
    assert apply_norm(image, kept(2, 3, 5), torch.ones(8), torch.zeros(8), 1, 1e-5).image.stride() == image.stride()
    assert Plan.of(image, 1).steps == (120, 1, 8)
    assert Plan.of(image.contiguous(), 1).steps == (120, 15, 1)
