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
    SCAN,
    compute_gaussian_factor,
    compute_tile_mask,
    compute_tile_scores,
    compute_window_distances,
    find_first_position,
    find_kept_bounds,
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
    q, k, v, do, row_lse, delta, bias, seed, distance, b, h, number, m, n, allowed,
    scale, dropout, gaussian_factor, queries, keys, GAUSSIAN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Recompute of one tile: the weights a, a (dOᵀ v), and dS."""
    scores = compute_tile_scores(
        q, k, bias, b, h, m, n, allowed, distance, queries, scale, gaussian_factor, GAUSSIAN, PRECISION
    )
    below = scores - row_lse[:, None]
    p = tl.exp2(below)
    dp = tl.dot(do, tl.trans(v), input_precision=PRECISION).to(tl.float32)
    weights = p
    if GAUSSIAN == 1:
        weights = tl.exp2(below + gaussian_factor * distance * distance)
    if seed is not None:
        weights *= sample_dropout(seed, number, m, n, queries, keys, dropout)
    weighted_dp = weights * dp
    return weights, weighted_dp, weighted_dp - p * delta[:, None]


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def write_dq(
    query, key, value, gradient, lse, deltas, context, d_query, d_centre, sorted_rows,
    bias, centres, keep, mask, offsets, seed,
    offset, window, width, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, GAUSSIAN: tl.constexpr, EVEN: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dQ of a tile of queries, of the gradient of their centres, and of Δ for the other kernels.

    With predicted windows it also writes the inputs of dK and dV into `sorted_rows`; EVEN as in forward.py.
    """
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    slot = q0 + tl.arange(0, M)
    m = find_query_indices(slot, centres, b, queries)
    inside = m < queries
    row = number.to(tl.int64) * queries + m
    first = find_first_position(offset, offsets, b)
    centre, gaussian_factor = None, compute_gaussian_factor(width)
    if centres is not None:
        centre = load_centres(slot, centres, b, queries)
    q = load_rows(query, b, h, m, inside, size, D)
    do = load_rows(gradient, b, h, m, inside, value_size, V)
    row_lse = tl.load(lse + row, mask=inside, other=float("inf"))
    o = load_rows(context, b, h, m, inside, value_size, V)
    delta = tl.sum(do.to(tl.float32) * o.to(tl.float32), 1)
    if centres is None:
        tl.store(deltas + row, delta, mask=inside)
    else:
        padded = pad_length(queries)
        at = number.to(tl.int64) * padded + slot
        store_rows((sorted_rows[0], 0, 0, size), b, h, at, None, size, q, D)
        store_rows((sorted_rows[1], 0, 0, value_size), b, h, at, None, value_size, do, V)
        tl.store(sorted_rows[2] + at, row_lse)
        tl.store(sorted_rows[2] + tl.num_programs(1).to(tl.int64) * padded + at, delta)
    dq = tl.zeros([M, D], tl.float32)
    centre_acc = tl.zeros([M], tl.float32)
    low, high = find_key_bounds(q0, first, keys, window, centre, inside, width, M, N, CAUSAL, WINDOWED)
    if EVEN:
        low = find_whole_tiles(low, high, keys, N)
    if keep is not None and centres is None:
        hole, end = find_kept_bounds(keep, b, keys, SCAN)  # noqa: RUF059  # _ would be carried by loops
        high = tl.minimum(high, end)
    for k0 in range(low, high, N):
        n = k0 + tl.arange(0, N)
        valid = None if EVEN else load_padding(keep, b, n, keys)
        distance = None
        if centre is not None:
            distance = compute_window_distances(k0, valid, centre, N)
        allowed = compute_tile_mask(b, h, m, n, first, valid, mask, distance, queries, window, width, CAUSAL, WINDOWED)
        k = load_rows(key, b, h // group, n, valid, size, D)
        v = load_rows(value, b, h // group, n, valid, value_size, V)
        _, weighted_dp, ds = recompute_tile(
            q, k, v, do, row_lse, delta, bias, seed, distance, b, h, number, m, n, allowed,
            scale, dropout, gaussian_factor, queries, keys, GAUSSIAN, PRECISION,
        )  # fmt: skip
        dq += tl.dot(ds.to(k.dtype), k, input_precision=PRECISION).to(tl.float32)
        if d_centre is not None:
            exponent = ds if GAUSSIAN == 2 else weighted_dp
            centre_acc += tl.sum(exponent * distance, 1)
    store_rows(d_query, b, h, m, inside, size, dq * scale, D)
    if d_centre is not None:
        tl.store(d_centre + row, centre_acc * (4 / (width * width)), mask=inside)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def write_dkv(
    query, key, value, gradient, lse, deltas, d_keys, d_values,
    bias, keep, mask, offsets, seed,
    offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dK and dV of a tile of keys, summed over all query heads that share them.

    backward_windows.py is that of predicted windows.
    """
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    key_heads = heads // group
    b, key_head = number // key_heads, number % key_heads
    n = k0 + tl.arange(0, N)
    first = find_first_position(offset, offsets, b)
    valid = load_padding(keep, b, n, keys)
    k = load_rows(key, b, key_head, n, valid, size, D)
    v = load_rows(value, b, key_head, n, valid, value_size, V)
    dk = tl.zeros([N, D], tl.float32)
    dv = tl.zeros([N, V], tl.float32)
    low, high = find_query_bounds(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    if keep is not None:
        high = high * tl.max(valid.to(tl.int32), 0)  # no query for a tile of padding alone
    for member in range(group):
        h = key_head * group + member
        head = b * heads + h
        for q0 in range(low, high, M):
            m = q0 + tl.arange(0, M)
            inside = m < queries
            row = head.to(tl.int64) * queries + m
            q = load_rows(query, b, h, m, inside, size, D)
            do = load_rows(gradient, b, h, m, inside, value_size, V)
            row_lse = tl.load(lse + row, mask=inside, other=float("inf"))
            delta = tl.load(deltas + row, mask=inside, other=0.0)
            allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
            weights, _, ds = recompute_tile(
                q, k, v, do, row_lse, delta, bias, seed, None, b, h, head, m, n, allowed,
                scale, dropout, 0.0, queries, keys, 0, PRECISION,
            )  # fmt: skip
            dv += tl.dot(tl.trans(weights).to(do.dtype), do, input_precision=PRECISION).to(tl.float32)
            dk += tl.dot(tl.trans(ds).to(q.dtype), q, input_precision=PRECISION).to(tl.float32)
    store_rows(d_keys, b, key_head, n, n < keys, size, dk * scale, D)
    store_rows(d_values, b, key_head, n, n < keys, value_size, dv, V)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def write_dbias(
    query, key, value, gradient, lse, deltas, d_bias,
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
    acc = tl.zeros([M], tl.float32)
    low = tl.maximum(0, 1 - nearest - M)
    high = tl.minimum(queries, keys - nearest)
    if CAUSAL:
        high = tl.where(nearest > first, low, high)
    for q0 in range(low, high, M):
        m = q0 + along
        n = q0 + nearest + tl.arange(0, 2 * M)
        inside = m < queries
        row = number.to(tl.int64) * queries + m
        valid = load_padding(keep, b, tl.maximum(n, 0), keys) & (n >= 0)
        allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
        q = load_rows(query, b, h, m, inside, size, D)
        do = load_rows(gradient, b, h, m, inside, value_size, V)
        k = load_rows(key, b, h // group, n, valid, size, D)
        v = load_rows(value, b, h // group, n, valid, value_size, V)
        row_lse = tl.load(lse + row, mask=inside, other=float("inf"))
        delta = tl.load(deltas + row, mask=inside, other=0.0)
        _, _, ds = recompute_tile(
            q, k, v, do, row_lse, delta, bias, seed, None, b, h, number, m, n, allowed,
            scale, dropout, 0.0, queries, keys, 0, PRECISION,
        )  # fmt: skip
        acc += tl.sum(tl.gather(ds, along[:, None] + along[None, :], 1), 0)
    span = queries + keys - 1
    slot = tl.program_id(0) * M + along
    tl.store(d_bias + number.to(tl.int64) * span + slot, acc, mask=slot < span)
