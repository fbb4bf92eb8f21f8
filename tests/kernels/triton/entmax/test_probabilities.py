import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/simplex.py checks on a GPU", allow_module_level=True)

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.entmax.probabilities import compute_entmax_weights


@triton.jit
@no_type_check
def shown(scores, found, rise, tau, POWER: tl.constexpr):
    """Shares and their slopes for a row of 16 scores whose best is 0."""
    each = tl.arange(0, 16)
    row = tl.load(scores + each)[None, :]
    zero, one = tl.zeros([1], tl.float32), tl.full([1], 1.0, tl.float32)
    over, weights, lean = compute_entmax_weights(row, zero, tau * one, one, rise, POWER)
    tl.store(found + each[None, :], over)
    tl.store(found + 16 + each[None, :], weights)
    tl.store(found + 32 + each[None, :], lean)


@pytest.mark.parametrize(
    ("bend", "rise", "weights", "leans"),
    [(1, 1.0, (0.5, 0.25), (1.0, 1.0)), (2, 0.5, (0.25, 0.140625), (0.5, 0.375)), (0, 0.5, (1.0, 0.5625), (1.0, 0.75))],
    ids=["sparsemax", "entmax 1.5", "entmax 1.5 as any other, relative to the largest"],
)
def test_three_scores_can_be_worked_by_hand(bend, rise, weights, leans):
    """At a threshold of -1/2: scores 0 and -1/4 stand above it, -1 and what may not be seen do not."""
    scores, found = torch.full((16,), -torch.inf), torch.empty(3, 16)
    scores[:3] = torch.tensor([0.0, -0.25, -1.0])
    shown[(1,)](scores, found, rise, -0.5, POWER=bend)
    assert found[0, :2].tolist() == [0.5, 0.5 - 0.25 * rise]
    torch.testing.assert_close(found[1, :2], torch.tensor(weights))
    torch.testing.assert_close(found[2, :2], torch.tensor(leans))
    assert (found[:, 2:] == 0).all()
