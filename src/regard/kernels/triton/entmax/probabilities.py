"""Sparsemax and entmax weights of a tile from its scores and the threshold.

    a = u^p,  u = max(0, (α-1) (s - best) - τ),  p = 1 / (α-1)

`POWER` is 1 where p is 1 (sparsemax), 2 where p is 2 (α = 1.5), and 0 for every other p, which takes logarithms, of weights
relative to the largest, so that a large p multiplies no rounding error:

    a = e / Σ e,  e = (1 + (α-1) (s - best) / (-τ))^p,  `mass` = Σ e
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import LOG2E, compute_tile_mask, compute_tile_scores, load_padding, load_rows


@triton.jit
@no_type_check
def compute_masked_scores(
    q, key, keep, mask, b, h, group, m, n, first, queries, keys, window, size, scale,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Masked scores of a tile, the keys themselves, and the mask of those within the sequence."""
    valid = load_padding(keep, b, n, keys)
    allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    k = load_rows(key, b, h // group, n, valid, size, D)
    return compute_tile_scores(q, k, None, b, h, m, n, allowed, None, queries, scale, 1.0, 0, PRECISION), k, valid


@triton.jit
@no_type_check
def load_alpha_minus_one(alphas, alpha, h):
    """α - 1 of a head, from its own α or one for all."""
    own_alpha = alpha
    if alphas is not None:
        own_alpha = tl.load(alphas[0] + h * alphas[1])
    return own_alpha - 1.0


@triton.jit
@no_type_check
def compute_log2_1p(x, base):
    """log2(1 + x) for x from -1 to 0, relatively exact: near 0 by the series of 2 atanh(x / (2 + x)); `base` is 1 + x."""
    t = x / (2.0 + x)
    square = t * t
    series = (2 * LOG2E) * t * (1.0 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7))))
    return tl.where(x > -0.25, series, tl.log2(tl.where(x > -0.25, 1.0, base)))


@triton.jit
@no_type_check
def compute_entmax_weights(scores, row_max, tau, mass, alpha_minus_one, POWER: tl.constexpr):
    """u, the weights u^p, and u^(p-1), to which their derivative is proportional, of a tile; `mass` as in the module."""
    raised = alpha_minus_one * (scores - row_max[:, None])
    support = raised > tau[:, None]
    u = tl.where(support, raised - tau[:, None], 0.0)
    if POWER == 1:
        slope = tl.where(support, 1.0, 0.0)
        weights = u
    elif POWER == 2:
        slope = u
        weights = u * u
    else:
        ratio = tl.where(support, raised, 0.0) * (-1 / tau)[:, None]
        base = 1.0 + ratio
        relative = tl.where(support, tl.exp2(compute_log2_1p(ratio, base) / alpha_minus_one), 0.0)
        weights = relative * (1 / mass)[:, None]
        slope = relative / tl.maximum(base, 1e-30) * tl.exp2((alpha_minus_one - 1) * tl.log2(mass))[:, None]
    return u, weights, slope
