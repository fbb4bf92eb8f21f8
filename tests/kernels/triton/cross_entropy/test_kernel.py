import math
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/transformer.py checks on a GPU", allow_module_level=True)

from regard.data.batch import Padded
from regard.kernels.triton.cross_entropy import kernel as kernel
from regard.kernels.triton.cross_entropy.kernel import compute_cross_entropy
from regard.losses.cross_entropy import entropy, likelihood_loss


def test_two_words_can_be_worked_by_hand():
    logits, bias = torch.tensor([[0.0, 1.0]]), torch.tensor([1.0, 0.0])
    total, nll, undecided = compute_cross_entropy(logits, bias, torch.tensor([0]), None, 0.0, 0.0, True)
    assert total.item() == pytest.approx(math.log(2))
    assert nll.item() == pytest.approx(math.log(2))
    assert undecided.item() == 0
    torch.testing.assert_close(logits, torch.tensor([[-0.5, 0.5]]))


@pytest.mark.parametrize("confidence", [0.0, 0.3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("masked", [True, False])
def test_cost_and_slope_are_those_of_the_formula(monkeypatch, smoothing, confidence, masked):
    monkeypatch.setattr(kernel, "BLOCK", 8)
    logits, bias, wanted = torch.randn(5, 19), torch.randn(19), torch.randint(19, (5,))
    kept = torch.tensor([True, False, True, True, False]) if masked else torch.ones(5, dtype=torch.bool)
    leaf = logits.clone().requires_grad_()
    target = Padded(wanted[None], kept[None])
    loss = likelihood_loss((leaf + bias)[None], target, smoothing, confidence)
    slope = torch.autograd.grad(loss.total, leaf)[0]
    found = compute_cross_entropy(logits, bias, wanted, kept if masked else None, smoothing, confidence, True)
    torch.testing.assert_close(found[0].sum(), loss.total.detach())
    torch.testing.assert_close(found[1].sum(), torch.as_tensor(loss.parts["nll"]))
    expected = entropy((leaf + bias)[None], target).detach() if confidence else torch.tensor(0.0)
    torch.testing.assert_close(found[2].sum(), expected)
    torch.testing.assert_close(logits, slope, rtol=1e-4, atol=1e-6)


def test_rows_that_do_not_count_may_hold_anything():
    logits = torch.tensor([[0.0, 1.0], [torch.nan, 0.0]])
    found = compute_cross_entropy(logits, torch.zeros(2), torch.tensor([0, 1]), torch.tensor([True, False]), 0.1, 0.0, True)
    assert found.isfinite().all()
    assert logits[1].tolist() == [0, 0]


def test_without_learning_the_logits_stay():
    logits = torch.randn(3, 5)
    before = logits.clone()
    compute_cross_entropy(logits, torch.zeros(5), torch.tensor([0, 1, 4]), None, 0.1, 0.0, False)
    assert torch.equal(logits, before)


def test_half_precision_is_read_and_written_and_nothing_else():
    logits = torch.randn(4, 33).bfloat16()
    wide, wanted = logits.float(), torch.randint(33, (4,))
    found = compute_cross_entropy(logits, torch.zeros(33), wanted, None, 0.1, 0.0, True)
    exact = compute_cross_entropy(wide, torch.zeros(33), wanted, None, 0.1, 0.0, True)
    torch.testing.assert_close(found, exact)
    torch.testing.assert_close(logits, wide.bfloat16())
