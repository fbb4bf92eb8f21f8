import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/parity.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.add_norm.launch import ForwardOutput, NormArguments, backward, forward

ONE, NONE = torch.ones(2), torch.zeros(2)


def test_two_numbers_can_be_worked_by_hand():
    norm, found = NormArguments(torch.tensor([2.0, 3.0]), torch.tensor([0.5, 0.0]), 1e-12), torch.tensor([[-1.0, 1.0]])
    went = forward(torch.tensor([[1.0, 2.0]]), found, torch.tensor([1.0, 0.0]), norm, True, torch.float32)
    assert went.total.tolist() == [[1, 3]]  # mean 2, spread 1
    assert went.entered.tolist() == went.wide.tolist() == [[-2 + 0.5, 3]]
    assert (went.centres.tolist(), went.scales.tolist()) == ([2], [1])


def test_a_root_mean_square_subtracts_nothing():
    went = forward(torch.tensor([[1.0, 7.0]]), None, None, NormArguments(ONE, None, 1e-12, True), False, torch.float32)
    torch.testing.assert_close(went.entered, torch.tensor([[0.2, 1.4]]))
    assert went.centres.tolist() == [0]


def test_the_gradient_of_a_norm_has_nothing_along_itself_or_along_ones():
    norm, data = NormArguments(torch.randn(5), torch.randn(5)), torch.randn(3, 5)
    went = forward(data, None, None, norm, False, torch.float32)
    found = backward(went, norm, None, False, None, None, torch.randn(3, 5))
    torch.testing.assert_close(found.data.sum(1), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close((found.data * (data - data.mean(1, keepdim=True))).sum(1), torch.zeros(3), atol=1e-4, rtol=0)


def test_what_flows_into_the_sum_passes_to_both_and_the_shifts_are_sums_over_rows():
    norm, flow = NormArguments(ONE, NONE), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    went = forward(torch.randn(2, 2), torch.randn(2, 2), ONE, norm, False, torch.float32)
    found = backward(went, norm, torch.float32, True, flow, None, None)
    assert torch.equal(found.data, flow)
    assert torch.equal(found.sublayer, flow)
    assert found.added.tolist() == [4, 6]
    moved = backward(went, norm, torch.float32, False, None, flow, flow)
    assert moved.shift.tolist() == [8, 12]
    assert moved.added is None


def test_the_same_numbers_are_dropped_there_and_back_and_others_by_another_seed():
    rows = torch.ones(50, 24)
    masks = []
    for seed in (torch.tensor([3]), torch.tensor([4])):
        told = NormArguments(torch.ones(24), rms=True, seed=seed, chance=0.25)
        went = forward(torch.zeros_like(rows), rows, None, told, False, torch.float32)
        found = backward(went, told, torch.float32, True, rows, None, None)
        torch.testing.assert_close(found.added, went.total.sum(0))
        assert torch.equal(found.sublayer, went.total)
        assert sorted(went.total.unique().tolist()) == pytest.approx([0, 4 / 3])
        masks.append(went.total == 0)
    assert 0.2 < masks[0].float().mean() < 0.3
    assert not torch.equal(*masks)
    assert masks[0].float().mean(0).std() < 0.12  # no column is dropped more often than another
    again = ForwardOutput(went.total, None, None, went.centres, went.scales)
    assert torch.equal(backward(again, told, torch.float32, True, rows, None, None).sublayer, found.sublayer)
