"""Backward of sparsemax and entmax attention: recomputes the weights from the saved threshold.

With u what a score has above the threshold, p = 1/(α-1), a = u^p, w = u^(p-1) = a^(2-α), and g_k = dOᵀ v_k:

    ds = w (g - ḡ),  ḡ = Σ w g / Σ w        dv_k = Σ_q a dO_q        dq = scale Σ_k ds k        dk = scale Σ_q ds q
    dα = Σ ds p² u (1 - log u)

w is zero outside the support: for sparsemax it is 1 there, and ḡ the mean of g. Dropout applies to a and to g alike.
Peters, Niculae and Martins 2019, https://arxiv.org/abs/1905.05702; the gradient of α follows from Σ a = 1, which
determines the threshold. There are no atomics, so that results are deterministic.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.entmax.probabilities import compute_entmax_weights, compute_masked_scores, load_alpha_minus_one
from regard.kernels.triton.flash.tile import (
    LN2,
    LOG2E,
    find_first_position,
    find_key_bounds,
    find_query_bounds,
    load_padding,
    load_rows,
    sample_dropout,
    store_rows,
)


@triton.jit
@no_type_check
def load_dweights(do, v, seed, number, m, n, queries, keys, dropout, PRECISION: tl.constexpr):
    """dA = dOᵀ v of a tile, with dropout."""
    dp = tl.dot(do, tl.trans(v), input_precision=PRECISION).to(tl.float32)
    if seed is not None:
        dp *= sample_dropout(seed, number, m, n, queries, keys, dropout)
    return dp


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def write_dq(
    query, key, value, gradient, edges, means, d_query, d_alpha,
    alphas, keep, mask, offsets, seed,
    alpha, offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, POWER: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dQ: one pass for ḡ of a tile of queries, which `write_dkv` reads too, and one for the gradient."""
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    m = q0 + tl.arange(0, M)
    inside = m < queries
    row = number.to(tl.int64) * queries + m
    first = find_first_position(offset, offsets, b)
    alpha_minus_one = load_alpha_minus_one(alphas, alpha, h)
    q = load_rows(query, b, h, m, inside, size, D)
    do = load_rows(gradient, b, h, m, inside, value_size, V)
    row_max = tl.load(edges + row, mask=inside, other=0.0)
    field = tl.num_programs(1).to(tl.int64) * queries
    tau = tl.load(edges + field + row, mask=inside, other=-1.0)
    mass = tl.load(edges + 2 * field + row, mask=inside, other=1.0)
    begin, end = find_key_bounds(q0, first, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)

    total = tl.zeros([M], tl.float32)
    slope = tl.zeros([M], tl.float32)
    for k0 in range(begin, end, N):
        n = k0 + tl.arange(0, N)
        scores, _, valid = compute_masked_scores(
            q, key, keep, mask, b, h, group, m, n, first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        _, _, slopes = compute_entmax_weights(scores, row_max, tau, mass, alpha_minus_one, POWER)
        if tl.max(tl.max(slopes, 1), 0) > 0:
            v = load_rows(value, b, h // group, n, valid, value_size, V)
            dp = load_dweights(do, v, seed, number, m, n, queries, keys, dropout, PRECISION)
            total += tl.sum(slopes * dp, 1)
            slope += tl.sum(slopes, 1)
    mean = total / tl.where(slope > 0, slope, 1.0)
    tl.store(means + row, mean, mask=inside)

    dq = tl.zeros([M, D], tl.float32)
    alpha_acc = tl.zeros([M], tl.float32)
    for k0 in range(begin, end, N):
        n = k0 + tl.arange(0, N)
        scores, k, valid = compute_masked_scores(
            q, key, keep, mask, b, h, group, m, n, first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        u, _, slopes = compute_entmax_weights(scores, row_max, tau, mass, alpha_minus_one, POWER)
        if tl.max(tl.max(slopes, 1), 0) > 0:
            v = load_rows(value, b, h // group, n, valid, value_size, V)
            dp = load_dweights(do, v, seed, number, m, n, queries, keys, dropout, PRECISION)
            ds = slopes * (dp - mean[:, None])
            dq += tl.dot(ds.to(k.dtype), k, input_precision=PRECISION).to(tl.float32)
            if d_alpha is not None:
                alpha_acc += tl.sum(ds * u * (1 - LN2 * tl.log2(tl.where(u > 0, u, 1.0))), 1)
    store_rows(d_query, b, h, m, inside, size, dq * (scale * LOG2E), D)
    if d_alpha is not None:
        tl.store(d_alpha + row, alpha_acc / (alpha_minus_one * alpha_minus_one), mask=inside)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def write_dkv(
    query, key, value, gradient, edges, means, d_keys, d_values,
    alphas, keep, mask, offsets, seed,
    alpha, offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, POWER: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dK and dV of a tile of keys, summed over all query heads that share them."""
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    key_heads = heads // group
    b, key_head = number // key_heads, number % key_heads
    n = k0 + tl.arange(0, N)
    first = find_first_position(offset, offsets, b)
    valid = load_padding(keep, b, n, keys)
    v = load_rows(value, b, key_head, n, valid, value_size, V)
    field = tl.num_programs(1).to(tl.int64) * group * queries
    dk = tl.zeros([N, D], tl.float32)
    dv = tl.zeros([N, V], tl.float32)
    begin, end = find_query_bounds(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    for member in range(group):
        h = key_head * group + member
        head = b * heads + h
        alpha_minus_one = load_alpha_minus_one(alphas, alpha, h)
        for q0 in range(begin, end, M):
            m = q0 + tl.arange(0, M)
            inside = m < queries
            row = head.to(tl.int64) * queries + m
            q = load_rows(query, b, h, m, inside, size, D)
            row_max = tl.load(edges + row, mask=inside, other=0.0)
            tau = tl.load(edges + field + row, mask=inside, other=-1.0)
            mass = tl.load(edges + 2 * field + row, mask=inside, other=1.0)
            scores, _, _ = compute_masked_scores(
                q, key, keep, mask, b, h, group, m, n, first, queries, keys, window, size, scale,
                CAUSAL, WINDOWED, D, PRECISION,
            )  # fmt: skip
            _, weights, slopes = compute_entmax_weights(scores, row_max, tau, mass, alpha_minus_one, POWER)
            if tl.max(tl.max(slopes, 1), 0) > 0:
                mean = tl.load(means + row, mask=inside, other=0.0)
                do = load_rows(gradient, b, h, m, inside, value_size, V)
                dp = load_dweights(do, v, seed, head, m, n, queries, keys, dropout, PRECISION)
                ds = slopes * (dp - mean[:, None])
                if seed is not None:
                    weights *= sample_dropout(seed, head, m, n, queries, keys, dropout)
                dv += tl.dot(tl.trans(weights).to(do.dtype), do, input_precision=PRECISION).to(tl.float32)
                dk += tl.dot(tl.trans(ds).to(q.dtype), q, input_precision=PRECISION).to(tl.float32)
    store_rows(d_keys, b, key_head, n, n < keys, size, dk * (scale * LOG2E), D)
    store_rows(d_values, b, key_head, n, n < keys, value_size, dv, V)
