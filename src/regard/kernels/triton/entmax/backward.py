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

from regard.kernels.triton.entmax.probabilities import compute_entmax_weights, compute_masked_scores, load_rise
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
def load_dweights(gradient, value, seed, number, q, k, queries, keys, dropout, PRECISION: tl.constexpr):
    """dA = dOᵀ v of a tile, with dropout."""
    back = tl.dot(gradient, tl.trans(value), input_precision=PRECISION).to(tl.float32)
    if seed is not None:
        back *= sample_dropout(seed, number, q, k, queries, keys, dropout)
    return back


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def of_queries(
    query, found, values, gradient, edges, means, d_query, d_alpha,
    alphas, keep, mask, offsets, seed,
    alpha, offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BEND: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dQ: one pass for ḡ of a tile of queries, which `of_memory` reads too, and one for the gradient."""
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    q = q0 + tl.arange(0, M)
    inside = q < queries
    row = number.to(tl.int64) * queries + q
    first = find_first_position(offset, offsets, b)
    rise = load_rise(alphas, alpha, h)
    asked = load_rows(query, b, h, q, inside, size, D)
    arrived = load_rows(gradient, b, h, q, inside, value_size, V)
    best = tl.load(edges + row, mask=inside, other=0.0)
    tau = tl.load(edges + tl.num_programs(1).to(tl.int64) * queries + row, mask=inside, other=0.0)
    begin, end = find_key_bounds(q0, first, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)

    total = tl.zeros([M], tl.float32)
    slope = tl.zeros([M], tl.float32)
    for k0 in range(begin, end, N):
        k = k0 + tl.arange(0, N)
        scores, _, there = compute_masked_scores(
            asked, found, keep, mask, b, h, group, q, k, first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        _, _, lean = compute_entmax_weights(scores, best, tau, rise, BEND)
        if tl.max(tl.max(lean, 1), 0) > 0:
            value = load_rows(values, b, h // group, k, there, value_size, V)
            back = load_dweights(arrived, value, seed, number, q, k, queries, keys, dropout, PRECISION)
            total += tl.sum(lean * back, 1)
            slope += tl.sum(lean, 1)
    mean = total / tl.where(slope > 0, slope, 1.0)
    tl.store(means + row, mean, mask=inside)

    found_query = tl.zeros([M, D], tl.float32)
    bending = tl.zeros([M], tl.float32)
    for k0 in range(begin, end, N):
        k = k0 + tl.arange(0, N)
        scores, key, there = compute_masked_scores(
            asked, found, keep, mask, b, h, group, q, k, first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        over, _, lean = compute_entmax_weights(scores, best, tau, rise, BEND)
        if tl.max(tl.max(lean, 1), 0) > 0:
            value = load_rows(values, b, h // group, k, there, value_size, V)
            back = load_dweights(arrived, value, seed, number, q, k, queries, keys, dropout, PRECISION)
            ds = lean * (back - mean[:, None])
            found_query += tl.dot(ds.to(key.dtype), key, input_precision=PRECISION).to(tl.float32)
            if d_alpha is not None:
                bending += tl.sum(ds * over * (1 - LN2 * tl.log2(tl.where(over > 0, over, 1.0))), 1)
    store_rows(d_query, b, h, q, inside, size, found_query * (scale * LOG2E), D)
    if d_alpha is not None:
        tl.store(d_alpha + row, bending / (rise * rise), mask=inside)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def of_memory(
    query, found, values, gradient, edges, means, d_keys, d_values,
    alphas, keep, mask, offsets, seed,
    alpha, offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BEND: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dK and dV of a tile of keys, summed over all query heads that share them."""
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    key_heads = heads // group
    b, key_head = number // key_heads, number % key_heads
    k = k0 + tl.arange(0, N)
    first = find_first_position(offset, offsets, b)
    there = load_padding(keep, b, k, keys)
    value = load_rows(values, b, key_head, k, there, value_size, V)
    field = tl.num_programs(1).to(tl.int64) * group * queries
    found_key = tl.zeros([N, D], tl.float32)
    found_value = tl.zeros([N, V], tl.float32)
    begin, end = find_query_bounds(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    for member in range(group):
        h = key_head * group + member
        asking = b * heads + h
        rise = load_rise(alphas, alpha, h)
        for q0 in range(begin, end, M):
            q = q0 + tl.arange(0, M)
            inside = q < queries
            row = asking.to(tl.int64) * queries + q
            asked = load_rows(query, b, h, q, inside, size, D)
            best = tl.load(edges + row, mask=inside, other=0.0)
            tau = tl.load(edges + field + row, mask=inside, other=0.0)
            scores, _, _ = compute_masked_scores(
                asked, found, keep, mask, b, h, group, q, k, first, queries, keys, window, size, scale,
                CAUSAL, WINDOWED, D, PRECISION,
            )  # fmt: skip
            _, weights, lean = compute_entmax_weights(scores, best, tau, rise, BEND)
            if tl.max(tl.max(lean, 1), 0) > 0:
                mean = tl.load(means + row, mask=inside, other=0.0)
                arrived = load_rows(gradient, b, h, q, inside, value_size, V)
                back = load_dweights(arrived, value, seed, asking, q, k, queries, keys, dropout, PRECISION)
                ds = lean * (back - mean[:, None])
                if seed is not None:
                    weights *= sample_dropout(seed, asking, q, k, queries, keys, dropout)
                found_value += tl.dot(tl.trans(weights).to(arrived.dtype), arrived, input_precision=PRECISION).to(tl.float32)
                found_key += tl.dot(tl.trans(ds).to(asked.dtype), asked, input_precision=PRECISION).to(tl.float32)
    store_rows(d_keys, b, key_head, k, k < keys, size, found_key * (scale * LOG2E), D)
    store_rows(d_values, b, key_head, k, k < keys, value_size, found_value, V)
