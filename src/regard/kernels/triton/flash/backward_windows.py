"""Backward to K and V with predicted windows, over queries sorted by window.

Tiles are transposed, keys by queries, so that weights stay in registers: they are the left operand of both products, and
need no shared memory. With queries by keys the compiler also serialises the products of a tile (ptxas' C7515). The
formulas are those of backward.py.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import (
    FAR,
    LOG2E,
    compute_gaussian_factor,
    compute_tile_mask,
    find_first_position,
    find_query_indices,
    find_window_bounds,
    load_padding,
    load_rows,
    pad_length,
    sample_dropout,
    store_rows,
)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def write_dkv(
    query, key, value, gradient, numbers, d_keys, d_values,
    bias, centres, keep, mask, offsets, seed,
    offset, window, width, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, GAUSSIAN: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dK and dV of a tile of keys, summed over all query heads that share them.

    `write_dq` has written q, dO, log-sum-exp and Δ sorted and padded with zeros to whole tiles, so that loads need
    no indirection.
    """
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    key_heads = heads // group
    b, key_head = number // key_heads, number % key_heads
    n = k0 + tl.arange(0, N)
    valid = load_padding(keep, b, n, keys)
    k = load_rows(key, b, key_head, n, valid, size, D)
    v = load_rows(value, b, key_head, n, valid, value_size, V)
    positions = tl.where(valid, n.to(tl.float32), FAR)
    dk = tl.zeros([N, D], tl.float32)
    dv = tl.zeros([N, V], tl.float32)
    low, high = find_window_bounds(k0, centres, b, keys, width, N)
    padded, gaussian_factor = pad_length(queries), compute_gaussian_factor(width)
    field = tl.num_programs(1).to(tl.int64) * group * padded  # stride between the fields of all queries
    for member in range(group):
        h = key_head * group + member
        head = b * heads + h
        for q0 in range(low // M * M, high, M):
            slot = q0 + tl.arange(0, M)
            row = numbers + head.to(tl.int64) * padded + slot
            q = load_rows(query, b, h, slot, None, size, D)
            do = load_rows(gradient, b, h, slot, None, value_size, V)
            distance = positions[:, None] - tl.load(centres[0] + b.to(tl.int64) * padded + slot)[None, :]
            allowed = tl.abs(distance) <= width
            if CAUSAL or WINDOWED or mask is not None:
                m, first = find_query_indices(slot, centres, b, queries), find_first_position(offset, offsets, b)
                allowed &= tl.trans(
                    compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, width, CAUSAL, WINDOWED)
                )
            scores = tl.dot(k, tl.trans(q), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
            if GAUSSIAN == 2:
                scores += gaussian_factor * distance * distance
            below = tl.where(allowed, scores - tl.load(row)[None, :], float("-inf"))
            p = tl.exp2(below)
            weights = p
            if GAUSSIAN == 1:
                weights = tl.exp2(below + gaussian_factor * distance * distance)
            if seed is not None:
                m = find_query_indices(slot, centres, b, queries)
                weights *= tl.trans(sample_dropout(seed, head, m, n, queries, keys, dropout))
            dp = tl.dot(v, tl.trans(do), input_precision=PRECISION).to(tl.float32)
            ds = weights * dp - p * tl.load(row + field)[None, :]
            dv += tl.dot(weights.to(do.dtype), do, input_precision=PRECISION).to(tl.float32)
            dk += tl.dot(ds.to(q.dtype), q, input_precision=PRECISION).to(tl.float32)
    store_rows(d_keys, b, key_head, n, n < keys, size, dk * scale, D)
    store_rows(d_values, b, key_head, n, n < keys, value_size, dv, V)
