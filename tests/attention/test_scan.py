import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from regard.attention.scan import count_doublings, recur, scan, shift


def one_by_one(carry, enter):
    found, x = [], torch.zeros_like(enter[..., 0]) if enter.shape[-1] else None
    for j in range(enter.shape[-1]):
        x = carry[..., j] * x + enter[..., j]
        found.append(x)
    return torch.stack(found, dim=-1) if found else enter


def pair(keys, dtype=torch.float64):
    return torch.rand(2, 3, keys, dtype=dtype), torch.randn(2, 3, keys, dtype=dtype)


@pytest.mark.parametrize("keys", [0, 1, 2, 3, 7, 8, 9])
def test_a_recurrence_equals_its_steps(keys):
    carry, enter = pair(keys)
    assert_close(recur(carry, enter), one_by_one(carry, enter), rtol=1e-14, atol=1e-14)


def test_a_recurrence_by_hand():
    found = recur(torch.tensor([9.0, 0.5, 0.0, 2.0]), torch.tensor([1.0, 1.0, 3.0, -1.0]))
    assert found.tolist() == [1.0, 1.5, 3.0, 5.0]


def test_gradients_of_a_recurrence_can_be_taken_twice():
    inputs = [each.requires_grad_() for each in pair(5)]
    assert gradcheck(recur, inputs)
    assert gradgradcheck(recur, inputs)


@pytest.mark.parametrize("least", [0.0, 1e-30, 0.9])
def test_a_long_recurrence_of_positive_numbers_stays_exact_in_single_precision(least):
    carry = torch.rand(4, 2000).mul(1 - least).add(least).masked_fill(torch.rand(4, 2000) < 0.1, least)
    enter = torch.rand(4, 2000).masked_fill(torch.rand(4, 2000) < 0.5, 0.0)
    found = recur(carry, enter)
    assert_close(
        found.double(), one_by_one(carry.double(), enter.double()), rtol=2e-6, atol=1e-37
    )  # where single precision ends


def test_only_what_is_carried_and_the_result_are_kept_for_the_gradient():
    kept = []
    carry, enter = (each.requires_grad_() for each in pair(64))
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        recur(carry, enter)
    assert [tensor.numel() for tensor in kept] == [carry.numel(), enter.numel()]


def test_a_scan_joins_from_left_to_right():
    turns = torch.randn(2, 2, 3, 6, dtype=torch.float64)  # matrices, whose products have an order
    found = scan(lambda left, right: (torch.einsum("ij...,jk...->ik...", left[0], right[0]),), (turns,))[0]
    product = torch.eye(2, dtype=torch.float64).expand(3, 2, 2)
    for key in range(6):
        product = product @ turns[..., key].movedim(-1, 0)
        assert_close(found[..., key].movedim(-1, 0), product)


@pytest.mark.parametrize(("keys", "times"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)])
def test_doubling_stops_when_the_last_key_reaches_the_first(keys, times):
    assert count_doublings(keys) == times


def test_what_stands_before():
    data = torch.tensor([[1.0, 2.0, 3.0]])
    assert shift(data).tolist() == [[0, 1, 2]]
    assert shift(data, 2, 7.0).tolist() == [[7, 7, 1]]
    assert shift(data, 5).tolist() == [[0, 0, 0]]
