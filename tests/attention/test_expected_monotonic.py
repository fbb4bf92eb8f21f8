import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention.expected_monotonic import covers, expect_alignment
from regard.attention.scan import shift


class Large(TorchDispatchMode):
    """How many results had so many numbers, or more."""

    def __init__(self, numbers):
        super().__init__()
        self.numbers, self.count = numbers, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **kwargs or {})
        self.count += isinstance(found, torch.Tensor) and found.numel() >= self.numbers
        return found


def given(batch=2, heads=3, queries=4, keys=5, dtype=torch.float64):
    """Chances to stop and to go on, as a walk has them, and where it stands."""
    stop = torch.rand(batch, heads, queries, keys, dtype=dtype)
    start = torch.rand(batch, heads, 1, keys, dtype=dtype).softmax(-1)
    return stop, shift(1 - stop), start


def by_hand(stop, carry, start):
    """Key by key."""
    found, last = torch.zeros_like(stop), start[:, :, 0]
    for query in range(stop.shape[2]):
        reached, now = torch.zeros_like(last[..., 0]), torch.zeros_like(last)
        for key in range(stop.shape[3]):
            reached = carry[:, :, query, key] * reached + last[..., key]
            now[..., key] = stop[:, :, query, key] * reached
        found[:, :, query] = last = now
    return found


@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 1, 1, 1), (1, 2, 7, 1), (2, 1, 1, 17)])
def test_each_query_goes_on_from_the_one_before(sizes):
    walk = given(*sizes)
    assert_close(expect_alignment(*walk), by_hand(*walk), rtol=1e-13, atol=1e-15)


def test_a_walk_in_two_parts_is_the_walk():
    stop, carry, start = given()
    first = expect_alignment(stop[:, :, :1], carry[:, :, :1], start)
    then = expect_alignment(stop[:, :, 1:], carry[:, :, 1:], first)
    assert_close(torch.cat((first, then), dim=2), expect_alignment(stop, carry, start))


@pytest.mark.parametrize("queries", [8, 64])
def test_the_way_back_makes_room_for_all_queries_a_few_times_and_not_for_each(queries):
    walk = [each.requires_grad_() for each in given(1, 1, queries, 5)]
    found = expect_alignment(*walk).sum()
    with Large(queries * 5) as large:
        found.backward()
    assert large.count <= 8


def test_on_a_cpu_there_is_no_kernel_and_the_reason_is_told():
    assert covers(torch.zeros(1, 1, 1, 1)) == "needs a GPU, got cpu"


@pytest.mark.unhooked
def test_a_walk_is_traced_in_one_piece():
    walk = given(1, 1, 3, 4)
    traced = torch.compile(expect_alignment, backend="eager", fullgraph=True)
    assert_close(traced(*walk), by_hand(*walk), rtol=1e-13, atol=1e-15)
