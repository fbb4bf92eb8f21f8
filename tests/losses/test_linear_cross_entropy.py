import os
from itertools import product

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.losses import linear_cross_entropy as module
from regard.losses.linear_cross_entropy import chunk_evenly, chunk_rows, linear_cross_entropy

ROWS, SIZE, VOCABULARY = 7, 3, 5


def inputs(dtype=torch.float64):
    made = (torch.randn(*shape, dtype=dtype) for shape in ((ROWS, SIZE), (VOCABULARY, SIZE), (VOCABULARY,)))
    return *(each.requires_grad_() for each in made), torch.arange(ROWS) % VOCABULARY


def plainly(hidden, weight, bias, wanted, smoothing, confidence):
    logits = F.linear(hidden, weight, bias)
    log = logits.log_softmax(-1)
    entropy = -(log.exp() * log).sum()
    total = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing) - confidence * entropy
    return total, F.cross_entropy(logits, wanted, reduction="sum"), entropy


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
@pytest.mark.parametrize(("smoothing", "confidence"), list(product((0.0, 0.1), (0.0, 0.3))))
def test_it_equals_the_cost_of_logits_and_so_do_its_gradients(monkeypatch, rows, smoothing, confidence):
    monkeypatch.setitem(module.CHUNK_ROWS, "cpu", rows)
    *learned, wanted = inputs()
    found = linear_cross_entropy(*learned, wanted, smoothing, confidence)
    total, nll, entropy = plainly(*learned, wanted, smoothing, confidence)
    assert_close(found.total, total)
    assert_close(found.nll, nll.detach())
    if confidence:
        assert_close(found.entropy, entropy.detach())
    assert_close(torch.autograd.grad(3 * found.total, learned), torch.autograd.grad(3 * total, learned))


def test_the_gradient_stays_right_for_logits_far_apart():
    *learned, wanted = inputs()
    far = [(each.detach() * 100).requires_grad_() for each in learned]
    assert_close(
        torch.autograd.grad(linear_cross_entropy(*far, wanted, 0.1).total, far),
        torch.autograd.grad(plainly(*far, wanted, 0.1, 0.0)[0], far),
    )


def test_without_gradients_nothing_is_kept_for_them(monkeypatch):
    *learned, wanted = inputs()
    told, begin = [], module.ChunkedPass.__init__
    with torch.no_grad():
        found = linear_cross_entropy(*learned, wanted)
    assert not found.total.requires_grad
    assert_close(found.total, plainly(*learned, wanted, 0.0, 0.0)[0].detach())
    monkeypatch.setattr(module.ChunkedPass, "__init__", lambda *arguments: told.append(arguments[4]) or begin(*arguments))
    with torch.no_grad():
        linear_cross_entropy(*learned, wanted)
    assert told == [False]
    frozen = [each.detach() for each in learned]
    assert_close(linear_cross_entropy(*frozen, wanted).total, found.total)


def test_only_what_learns_gets_a_gradient():
    hidden, weight, bias, wanted = inputs()
    found = linear_cross_entropy(hidden, weight.detach(), bias, wanted)
    found.total.backward()
    assert weight.grad is None
    assert hidden.grad.shape == (ROWS, SIZE)


def test_no_rows_cost_nothing():
    _, weight, bias, _ = inputs()
    found = linear_cross_entropy(torch.zeros(0, SIZE, dtype=torch.float64), weight, bias, torch.zeros(0, dtype=torch.long))
    found.total.backward()
    assert found.total == 0
    assert weight.grad.abs().sum() == 0


def test_in_half_precision_products_are_rounded_and_sums_are_not():
    *learned, wanted = inputs(torch.float32)
    with torch.autocast("cpu", torch.float16):
        found = linear_cross_entropy(*learned, wanted, 0.1)
    assert found.total.dtype == torch.float32
    exact = plainly(*learned, wanted, 0.1, 0.0)[0]
    assert_close(found.total, exact, rtol=2e-3, atol=2e-3)
    for mine, true in zip(torch.autograd.grad(found.total, learned), torch.autograd.grad(exact, learned), strict=True):
        assert mine.dtype == torch.float32
        assert_close(mine, true, rtol=2e-2, atol=5e-3)


@pytest.mark.parametrize(("smoothing", "confidence"), list(product((0.0, 0.1), (0.0, 0.3))))
def test_rows_that_are_not_kept_might_as_well_not_be_there(monkeypatch, smoothing, confidence):
    monkeypatch.setitem(module.CHUNK_ROWS, "cpu", 3)
    *learned, wanted = inputs()
    kept = torch.arange(ROWS) % 3 != 1
    masked = linear_cross_entropy(*learned, wanted, smoothing, confidence, kept)
    hidden, *rest = learned
    chosen = linear_cross_entropy(hidden[kept], *rest, wanted[kept], smoothing, confidence)
    for one, other in zip(masked, chosen, strict=True):
        assert_close(one, other)
    assert_close(torch.autograd.grad(masked.total, learned), torch.autograd.grad(chosen.total, learned))


@pytest.mark.skipif(
    not module.INSTALLED or os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in Triton's interpreter; benchmarks/transformer.py checks on a GPU",
)
@pytest.mark.parametrize(("smoothing", "confidence"), list(product((0.0, 0.1), (0.0, 0.3))))
def test_judged_by_one_kernel_it_is_the_same(monkeypatch, smoothing, confidence):
    monkeypatch.setitem(module.CHUNK_ROWS, "cpu", 3)
    *learned, wanted = inputs(torch.float32)
    kept = torch.arange(ROWS) != 2
    expected = linear_cross_entropy(*learned, wanted, smoothing, confidence, kept)
    monkeypatch.setattr(module, "DEVICES", ("cpu",))
    monkeypatch.setattr(module.ChunkedPass, "score_stepwise", None)
    found = linear_cross_entropy(*learned, wanted, smoothing, confidence, kept)
    assert_close(tuple(found), tuple(expected))
    assert_close(torch.autograd.grad(found.total, learned), torch.autograd.grad(expected.total, learned))
    with torch.no_grad():
        assert_close(linear_cross_entropy(*learned, wanted, smoothing, confidence, kept).total, expected.total.detach())


def test_a_gpu_that_lacks_something_takes_the_steps(monkeypatch):
    *learned, wanted = inputs(torch.float32)
    expected = linear_cross_entropy(*learned, wanted)
    monkeypatch.setattr(module, "DEVICES", ("cpu",))
    monkeypatch.setattr(module, "INSTALLED", True)
    monkeypatch.setattr(module.ChunkedPass, "score_fused", None)
    monkeypatch.setattr(module.capability, "find_obstacle", lambda device, dtype: "needs another GPU")
    assert_close(tuple(linear_cross_entropy(*learned, wanted)), tuple(expected))


def test_parts_are_full_or_of_one_length():
    assert chunk_rows(10, 4) == [slice(0, 4), slice(4, 8), slice(8, 12)]
    assert chunk_evenly(10, 4) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    assert chunk_evenly(8, 8) == [slice(0, 8)]
    assert chunk_rows(0, 4) == chunk_evenly(0, 4) == []
