"""Sparsemax and entmax weights of a tile from its scores and the threshold.

    a = u^p,  u = max(0, (α-1) (s - best) - τ),  p = 1 / (α-1)

`POWER` is 1 where p is 1 (sparsemax), 2 where p is 2 (α = 1.5), and 0 for every other p, which takes logarithms.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import compute_tile_mask, compute_tile_scores, load_padding, load_rows


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
def compute_entmax_weights(scores, row_max, tau, alpha_minus_one, POWER: tl.constexpr):
    """u, the weights u^p, and u^(p-1), to which their derivative is proportional, of a tile."""
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
        power = tl.exp2((1 / alpha_minus_one - 1) * tl.log2(tl.where(support, u, 1.0)))
        slope = tl.where(support, power, 0.0)
        weights = slope * u
    return u, weights, slope
