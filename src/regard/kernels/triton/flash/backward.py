"""Backward of FlashAttention: recomputes the weights from the saved log-sum-exp, and writes dQ, dK, dV and dBias.

With a the weights after dropout and Gaussian, p those of the softmax, and Δ = Σ_k a_k (dOᵀ v_k) = dOᵀ O:

    dv_k = Σ_q a dO_q        ds = a (dOᵀ v_k) - p Δ        dq = scale Σ_k ds k        dk = scale Σ_q ds q
    d bias at distance δ = Σ_{k - q = δ} ds

A Gaussian around p_q multiplies p or, with renormalisation, is a term of the scores; the gradient of its centre is
Σ_k 4 (k - p_q) / width² times that of its exponent, which is a (dOᵀ v_k) in the one case and ds in the other.
There are no atomics, so that results are deterministic.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import (
    compute_gaussian_factor,
    compute_tile_mask,
    compute_tile_scores,
    compute_window_distances,
    find_first_position,
    find_key_bounds,
    find_query_bounds,
    find_query_indices,
    find_whole_tiles,
    load_centres,
    load_padding,
    load_rows,
    pad_length,
    sample_dropout,
    store_rows,
)


@triton.jit
@no_type_check
def recompute_tile(
    asked, key, value, gradient, ended, delta, bias, seed, away, b, h, number, q, k, seen,
    scale, dropout, fall, queries, keys, BELL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Recompute of one tile: the weights a, a (dOᵀ v), and dS."""
    scores = compute_tile_scores(asked, key, bias, b, h, q, k, seen, away, queries, scale, fall, BELL, PRECISION)
    below = scores - ended[:, None]
    p = tl.exp2(below)
    back = tl.dot(gradient, tl.trans(value), input_precision=PRECISION).to(tl.float32)
    weights = p
    if BELL == 1:
        weights = tl.exp2(below + fall * away * away)
    if seed is not None:
        weights *= sample_dropout(seed, number, q, k, queries, keys, dropout)
    arriving = weights * back
    return weights, arriving, arriving - p * delta[:, None]


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def of_queries(
    query, found, values, gradient, lse, deltas, context, d_query, d_centre, beside,
    bias, centres, keep, mask, offsets, seed,
    offset, window, width, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BELL: tl.constexpr, EVEN: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dQ of a tile of queries, of the gradient of their centres, and of Δ for the other kernels.

    With predicted windows it also writes into `beside`, sorted by window, the inputs of dK and dV; EVEN as in forward.py.
    """
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    place = q0 + tl.arange(0, M)
    q = find_query_indices(place, centres, b, queries)
    inside = q < queries
    row = number.to(tl.int64) * queries + q
    first = find_first_position(offset, offsets, b)
    centre, fall = None, compute_gaussian_factor(width)
    if centres is not None:
        centre = load_centres(place, centres, b, queries)
    asked = load_rows(query, b, h, q, inside, size, D)
    arrived = load_rows(gradient, b, h, q, inside, value_size, V)
    ended = tl.load(lse + row, mask=inside, other=float("inf"))
    read = load_rows(context, b, h, q, inside, value_size, V)
    delta = tl.sum(arrived.to(tl.float32) * read.to(tl.float32), 1)
    if centres is None:
        tl.store(deltas + row, delta, mask=inside)
    else:
        long = pad_length(queries)
        at = number.to(tl.int64) * long + place
        store_rows((beside[0], 0, 0, size), b, h, at, None, size, asked, D)
        store_rows((beside[1], 0, 0, value_size), b, h, at, None, value_size, arrived, V)
        tl.store(beside[2] + at, ended)
        tl.store(beside[2] + tl.num_programs(1).to(tl.int64) * long + at, delta)
    found_query = tl.zeros([M, D], tl.float32)
    pull = tl.zeros([M], tl.float32)
    low, high = find_key_bounds(q0, first, keys, window, centre, inside, width, M, N, CAUSAL, WINDOWED)
    if EVEN:
        low = find_whole_tiles(low, high, keys, N)
    for k0 in range(low, high, N):
        k = k0 + tl.arange(0, N)
        there = None if EVEN else load_padding(keep, b, k, keys)
        away = None
        if centre is not None:
            away = compute_window_distances(k0, there, centre, N)
        seen = compute_tile_mask(b, h, q, k, first, there, mask, away, queries, window, width, CAUSAL, WINDOWED)
        key = load_rows(found, b, h // group, k, there, size, D)
        value = load_rows(values, b, h // group, k, there, value_size, V)
        _, arriving, ds = recompute_tile(
            asked, key, value, arrived, ended, delta, bias, seed, away, b, h, number, q, k, seen,
            scale, dropout, fall, queries, keys, BELL, PRECISION,
        )  # fmt: skip
        found_query += tl.dot(ds.to(key.dtype), key, input_precision=PRECISION).to(tl.float32)
        if d_centre is not None:
            exponent = ds if BELL == 2 else arriving
            pull += tl.sum(exponent * away, 1)
    store_rows(d_query, b, h, q, inside, size, found_query * scale, D)
    if d_centre is not None:
        tl.store(d_centre + row, pull * (4 / (width * width)), mask=inside)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def of_memory(
    query, found, values, gradient, lse, deltas, d_keys, d_values,
    bias, keep, mask, offsets, seed,
    offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dK and dV of a tile of keys, summed over all query heads that share them.

    backward_windows.py is that of predicted windows.
    """
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    shared = heads // group
    b, shared_head = number // shared, number % shared
    k = k0 + tl.arange(0, N)
    first = find_first_position(offset, offsets, b)
    there = load_padding(keep, b, k, keys)
    key = load_rows(found, b, shared_head, k, there, size, D)
    value = load_rows(values, b, shared_head, k, there, value_size, V)
    found_key = tl.zeros([N, D], tl.float32)
    found_value = tl.zeros([N, V], tl.float32)
    low, high = find_query_bounds(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    for member in range(group):
        h = shared_head * group + member
        head = b * heads + h
        for q0 in range(low, high, M):
            q = q0 + tl.arange(0, M)
            inside = q < queries
            row = head.to(tl.int64) * queries + q
            asked = load_rows(query, b, h, q, inside, size, D)
            arrived = load_rows(gradient, b, h, q, inside, value_size, V)
            ended = tl.load(lse + row, mask=inside, other=float("inf"))
            delta = tl.load(deltas + row, mask=inside, other=0.0)
            seen = compute_tile_mask(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
            weights, _, ds = recompute_tile(
                asked, key, value, arrived, ended, delta, bias, seed, None, b, h, head, q, k, seen,
                scale, dropout, 0.0, queries, keys, 0, PRECISION,
            )  # fmt: skip
            found_value += tl.dot(tl.trans(weights).to(arrived.dtype), arrived, input_precision=PRECISION).to(tl.float32)
            found_key += tl.dot(tl.trans(ds).to(asked.dtype), asked, input_precision=PRECISION).to(tl.float32)
    store_rows(d_keys, b, shared_head, k, k < keys, size, found_key * scale, D)
    store_rows(d_values, b, shared_head, k, k < keys, value_size, found_value, V)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def of_bias(
    query, found, values, gradient, lse, deltas, d_bias,
    bias, keep, mask, offsets, seed,
    offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dBias of M distances: each tile of queries has 2 M keys, and its diagonals are skewed into columns."""
    number = tl.program_id(1)
    b, h = number // heads, number % heads
    nearest = tl.program_id(0) * M - (queries - 1)  # the first distance k - q of this program
    first = find_first_position(offset, offsets, b)
    along = tl.arange(0, M)
    found_bias = tl.zeros([M], tl.float32)
    low = tl.maximum(0, 1 - nearest - M)
    high = tl.minimum(queries, keys - nearest)
    if CAUSAL:
        high = tl.where(nearest > first, low, high)
    for q0 in range(low, high, M):
        q = q0 + along
        k = q0 + nearest + tl.arange(0, 2 * M)
        inside = q < queries
        row = number.to(tl.int64) * queries + q
        there = load_padding(keep, b, tl.maximum(k, 0), keys) & (k >= 0)
        seen = compute_tile_mask(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
        asked = load_rows(query, b, h, q, inside, size, D)
        arrived = load_rows(gradient, b, h, q, inside, value_size, V)
        key = load_rows(found, b, h // group, k, there, size, D)
        value = load_rows(values, b, h // group, k, there, value_size, V)
        ended = tl.load(lse + row, mask=inside, other=float("inf"))
        delta = tl.load(deltas + row, mask=inside, other=0.0)
        _, _, ds = recompute_tile(
            asked, key, value, arrived, ended, delta, bias, seed, None, b, h, number, q, k, seen,
            scale, dropout, 0.0, queries, keys, 0, PRECISION,
        )  # fmt: skip
        found_bias += tl.sum(tl.gather(ds, along[:, None] + along[None, :], 1), 0)
    span = queries + keys - 1
    place = tl.program_id(0) * M + along
    tl.store(d_bias + number.to(tl.int64) * span + place, found_bias, mask=place < span)
