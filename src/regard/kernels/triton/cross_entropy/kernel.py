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
    logits, bias, targets, keep, losses, rows, smoothing, confidence,
    V: tl.constexpr, BLOCK: tl.constexpr, KEEP: tl.constexpr, GRADIENT: tl.constexpr, PENALISED: tl.constexpr,
):  # fmt: skip
    """Kernel of one row: its loss, and with GRADIENT the gradient in place of its logits."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * V
    target = tl.load(targets + row)
    counts = True
    if KEEP:
        counts = tl.load(keep + row) != 0
    row_max, total_exp, sum_x, sum_px = float("-inf"), 0.0, 0.0, 0.0
    for start in range(0, V, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < V
        x = tl.load(logits + place, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + place, mask=inside, other=0.0)
        sum_x += tl.sum(x, axis=0)
        new_max = tl.maximum(row_max, tl.max(tl.where(inside, x, float("-inf")), axis=0))
        rescale, e = tl.exp(row_max - new_max), tl.where(inside, tl.exp(x - new_max), 0.0)
        total_exp = total_exp * rescale + tl.sum(e, axis=0)
        if PENALISED:
            sum_px = sum_px * rescale + tl.sum(e * x, axis=0)
        row_max = new_max
    lse = row_max + tl.log(total_exp)
    nll = lse - (tl.load(logits + target).to(tl.float32) + tl.load(bias + target))
    entropy = lse - sum_px / total_exp
    total = (1.0 - smoothing) * nll + smoothing * (lse - sum_x / V)
    if PENALISED:
        total -= confidence * entropy
    tl.store(losses + row, tl.where(counts, total, 0.0))
    tl.store(losses + rows + row, tl.where(counts, nll, 0.0))
    tl.store(losses + 2 * rows + row, tl.where(counts, entropy, 0.0))
    if GRADIENT:
        tl.debug_barrier()  # all threads read the target's logit before it is overwritten
        for start in range(0, V, BLOCK):
            place = start + tl.arange(0, BLOCK)
            inside = place < V
            x = tl.load(logits + place, mask=inside, other=0.0).to(tl.float32)
            x += tl.load(bias + place, mask=inside, other=0.0)
            gradient = tl.exp(x - lse)
            if PENALISED:
                gradient = gradient * (1.0 + confidence * (x - lse + entropy))
            gradient = gradient - smoothing / V - tl.where(place == target, 1.0 - smoothing, 0.0)
            tl.store(logits + place, tl.where(counts, gradient, 0.0).to(logits.dtype.element_ty), mask=inside)


def compute_cross_entropy(
    logits: Float[Tensor, "rows vocabulary"],
    bias: Float[Tensor, " vocabulary"],
    targets: Int[Tensor, " rows"],
    keep: Bool[Tensor, " rows"] | None,
    smoothing: float,
    confidence: float,
    learns: bool,
) -> Float[Tensor, "3 rows"]:
    """Total, nll and entropy of each row, 0 outside `keep`; with `learns` dLogits of the total overwrite the logits."""
    rows, vocabulary = logits.shape
    losses = logits.new_empty(3, rows, dtype=torch.float32)
    settings = {"KEEP": keep is not None, "GRADIENT": learns, "PENALISED": confidence > 0, "num_warps": 8}
    block = min(BLOCK, triton.next_power_of_2(vocabulary))
    arguments = logits, bias, targets.contiguous(), keep, losses, rows, smoothing, confidence
    with torch.cuda.device(logits.device) if logits.is_cuda else nullcontext():  # the device of Triton's launch
        cross_entropy_kernel[(rows,)](*arguments, V=vocabulary, BLOCK=block, **settings)
    if not confidence:
        losses[2] = 0.0
    return losses
