import os
import re

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/parity.py checks on a GPU", allow_module_level=True)

from regard.attention import expected_monotonic
from regard.attention.expected_monotonic import covers, expect_alignment
from regard.attention.mechanisms.monotonic import MonotonicNormaliser
from regard.kernels.triton.monotonic import operator

from ....attention.test_expected_monotonic import by_hand, given


@pytest.fixture
def launched(monkeypatch):
    """Triton's interpreter in place of a GPU, and how many programs it ran."""
    monkeypatch.setattr(expected_monotonic, "DEVICES", ("cpu",))
    count = []
    monkeypatch.setattr(operator, "build_grid", lambda stop, rows=operator.build_grid: count.append(1) or rows(stop))
    return count


@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 1, 1, 1), (1, 2, 7, 1), (2, 1, 1, 17), (1, 2, 3, 130)])
def test_the_kernel_walks_the_same_way_there_and_back(launched, monkeypatch, sizes):
    walk = [each.requires_grad_() for each in given(*sizes)]
    found, flowing = expect_alignment(*walk), torch.randn(sizes, dtype=torch.float64)
    mine = torch.autograd.grad(found, walk, flowing)
    assert len(launched) == 2
    right = by_hand(*[each.detach() for each in walk])
    assert_close(found, right, rtol=1e-13, atol=1e-15)
    monkeypatch.setattr(expected_monotonic, "DEVICES", ())
    theirs = torch.autograd.grad(expect_alignment(*walk), walk, flowing)
    assert len(launched) == 2
    for one, other in zip(mine, theirs, strict=True):
        assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_the_gradients_of_the_kernel_equal_small_differences(launched):
    assert gradcheck(expect_alignment, [each.requires_grad_() for each in given(1, 1, 3, 4)])
    assert launched


def test_the_kernel_takes_what_does_not_lie_in_a_row(launched):
    stop, carry, start = given()
    turned = [each.transpose(2, 3).contiguous().transpose(2, 3) for each in (stop, carry)]
    assert torch.equal(expect_alignment(*turned, start.expand(2, 3, 1, 5)), expect_alignment(stop, carry, start))
    assert len(launched) == 2


def test_walks_of_several_rows_may_start_from_one(launched, monkeypatch):
    stop, carry, start = given()
    leaves = [each.requires_grad_() for each in (stop, carry, start[:1, :1].clone())]
    found = expect_alignment(*leaves)
    mine = torch.autograd.grad(found.sum(), leaves)
    assert len(launched) == 2
    monkeypatch.setattr(expected_monotonic, "DEVICES", ())
    again = expect_alignment(*leaves)
    assert_close(found, again, rtol=1e-13, atol=1e-15)
    for one, other in zip(mine, torch.autograd.grad(again.sum(), leaves), strict=True):
        assert_close(one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.unhooked
def test_a_start_of_another_source_is_refused_and_not_read_past_its_end(launched):
    stop, carry, start = given()
    with pytest.raises(RuntimeError, match="must match the existing size"):
        expect_alignment(stop, carry, start[..., :4])
    assert not launched


def test_energies_go_through_the_kernel_in_single_precision(launched, monkeypatch):
    made, energies = MonotonicNormaliser(noise=0.0).train(), torch.randn(2, 2, 6, 9)
    allowed = torch.rand(2, 1, 1, 9) > 0.3
    found = made(energies, allowed)
    assert launched
    monkeypatch.setattr(expected_monotonic, "DEVICES", ())
    assert_close(found, made(energies, allowed), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "dtype", "reason"),
    [
        ((1, 1, 1, 8193), torch.float32, "needs 1 to 8192 keys and a query, got .1, 1, 1, 8193."),
        ((1, 1, 1, 0), torch.float32, "needs 1 to 8192 keys"),
        ((1, 1, 1, 1), torch.float16, "needs float32 or float64, got float16"),
    ],
)
def test_what_the_kernel_does_not_cover_it_says(launched, shape, dtype, reason):
    assert re.match(reason, covers(torch.zeros(shape, dtype=dtype)))
