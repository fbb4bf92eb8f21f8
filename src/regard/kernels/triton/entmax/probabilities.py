"""Sparsemax and entmax weights of a tile from its scores and the threshold.

    a = u^p,  u = max(0, (α-1) (s - best) - τ),  p = 1 / (α-1)

`BEND` is 1 where p is 1 (sparsemax), 2 where p is 2 (α = 1.5), and 0 for every other p, which takes logarithms.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import compute_tile_mask, compute_tile_scores, load_padding, load_rows


@triton.jit
@no_type_check
def compute_masked_scores(
    asked, found, keep, mask, b, h, group, q, k, first, queries, keys, window, size, scale,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Masked scores of a tile, the keys themselves, and the mask of those within the sequence."""
    there = load_padding(keep, b, k, keys)
    seen = compute_tile_mask(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    key = load_rows(found, b, h // group, k, there, size, D)
    return compute_tile_scores(asked, key, None, b, h, q, k, seen, None, queries, scale, 1.0, 0, PRECISION), key, there


@triton.jit
@no_type_check
def load_rise(alphas, alpha, h):
    """α - 1 of a head, from its own α or one for all."""
    bent = alpha
    if alphas is not None:
        bent = tl.load(alphas[0] + h * alphas[1])
    return bent - 1.0


@triton.jit
@no_type_check
def compute_entmax_weights(scores, best, tau, rise, BEND: tl.constexpr):
    """u, the weights u^p, and u^(p-1), to which their derivative is proportional, of a tile."""
    raised = rise * (scores - best[:, None])
    support = raised > tau[:, None]
    over = tl.where(support, raised - tau[:, None], 0.0)
    if BEND == 1:
        lean = tl.where(support, 1.0, 0.0)
        weights = over
    elif BEND == 2:
        lean = over
        weights = over * over
    else:
        grown = tl.exp2((1 / rise - 1) * tl.log2(tl.where(support, over, 1.0)))
        lean = tl.where(support, grown, 0.0)
        weights = lean * over
    return over, weights, lean
