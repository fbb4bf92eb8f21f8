"""Fused cross-entropy of rows of logits, whose gradient overwrites them: two reads, one write.

    nll = lse - x_y,    H = lse - Σ_v p_v x_v,    total = (1 - ε) nll + ε / V Σ_v (lse - x_v) - β H
    d total / d x_v = p_v (1 + β (log p_v + H)) - ε / V - (1 - ε) [v = y]

Label smoothing is Szegedy et al. 2016, section 7, https://arxiv.org/abs/1512.00567; the confidence penalty Pereyra et al.
2017, section 3, https://arxiv.org/abs/1701.06548. Arithmetic is in float32, loads and stores in the logits' precision.
"""

from contextlib import nullcontext
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float, Int
from torch import Tensor

BLOCK = 4096
"""Logits of a row per iteration."""


@triton.jit
@no_type_check
def cross_entropy_kernel(
    logits, bias, wanted, kept, found, rows, smoothing, confidence,
    V: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr, LEARNS: tl.constexpr, SURE: tl.constexpr,
):  # fmt: skip
    """Kernel of one row: its loss, and with LEARNS the gradient in place of its logits."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * V
    word = tl.load(wanted + row)
    counts = True
    if KEPT:
        counts = tl.load(kept + row) != 0
    top, mass, plain, leaning = float("-inf"), 0.0, 0.0, 0.0
    for start in range(0, V, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < V
        x = tl.load(logits + place, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + place, mask=inside, other=0.0)
        plain += tl.sum(x, axis=0)
        higher = tl.maximum(top, tl.max(tl.where(inside, x, float("-inf")), axis=0))
        shrink, e = tl.exp(top - higher), tl.where(inside, tl.exp(x - higher), 0.0)
        mass = mass * shrink + tl.sum(e, axis=0)
        if SURE:
            leaning = leaning * shrink + tl.sum(e * x, axis=0)
        top = higher
    lse = top + tl.log(mass)
    nll = lse - (tl.load(logits + word).to(tl.float32) + tl.load(bias + word))
    undecided = lse - leaning / mass
    total = (1.0 - smoothing) * nll + smoothing * (lse - plain / V)
    if SURE:
        total -= confidence * undecided
    tl.store(found + row, tl.where(counts, total, 0.0))
    tl.store(found + rows + row, tl.where(counts, nll, 0.0))
    tl.store(found + 2 * rows + row, tl.where(counts, undecided, 0.0))
    if LEARNS:
        tl.debug_barrier()  # all threads read the target's logit before it is overwritten
        for start in range(0, V, BLOCK):
            place = start + tl.arange(0, BLOCK)
            inside = place < V
            x = tl.load(logits + place, mask=inside, other=0.0).to(tl.float32)
            x += tl.load(bias + place, mask=inside, other=0.0)
            slope = tl.exp(x - lse)
            if SURE:
                slope = slope * (1.0 + confidence * (x - lse + undecided))
            slope = slope - smoothing / V - tl.where(place == word, 1.0 - smoothing, 0.0)
            tl.store(logits + place, tl.where(counts, slope, 0.0).to(logits.dtype.element_ty), mask=inside)


def compute_cross_entropy(
    logits: Float[Tensor, "rows vocabulary"],
    bias: Float[Tensor, " vocabulary"],
    wanted: Int[Tensor, " rows"],
    kept: Bool[Tensor, " rows"] | None,
    smoothing: float,
    confidence: float,
    learns: bool,
) -> Float[Tensor, "3 rows"]:
    """Total, nll and entropy of each row, 0 outside `kept`; with `learns` dLogits of the total overwrite the logits."""
    rows, vocabulary = logits.shape
    found = logits.new_empty(3, rows, dtype=torch.float32)
    settings = {"KEPT": kept is not None, "LEARNS": learns, "SURE": confidence > 0, "num_warps": 8}
    block = min(BLOCK, triton.next_power_of_2(vocabulary))
    given = logits, bias, wanted.contiguous(), kept, found, rows, smoothing, confidence
    with torch.cuda.device(logits.device) if logits.is_cuda else nullcontext():  # the device of Triton's launch
        cross_entropy_kernel[(rows,)](*given, V=vocabulary, BLOCK=block, **settings)
    if not confidence:
        found[2] = 0.0
    return found
