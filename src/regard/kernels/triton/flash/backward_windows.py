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
def of_memory(
    query, found, values, gradient, numbers, d_keys, d_values,
    bias, centres, keep, mask, offsets, seed,
    offset, window, width, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BELL: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of dK and dV of a tile of keys, summed over all query heads that share them.

    q, dO, log-sum-exp and Δ are as `of_queries` has written them into `beside`: sorted, padded with zeros to whole tiles, so
    that loads need no indirection.
    """
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    shared = heads // group
    b, shared_head = number // shared, number % shared
    k = k0 + tl.arange(0, N)
    there = load_padding(keep, b, k, keys)
    key = load_rows(found, b, shared_head, k, there, size, D)
    value = load_rows(values, b, shared_head, k, there, value_size, V)
    stands = tl.where(there, k.to(tl.float32), FAR)
    found_key = tl.zeros([N, D], tl.float32)
    found_value = tl.zeros([N, V], tl.float32)
    low, high = find_window_bounds(k0, centres, b, keys, width, N)
    long, fall = pad_length(queries), compute_gaussian_factor(width)
    field = tl.num_programs(1).to(tl.int64) * group * long  # stride between the fields of all queries
    for member in range(group):
        h = shared_head * group + member
        head = b * heads + h
        for q0 in range(low // M * M, high, M):
            place = q0 + tl.arange(0, M)
            row = numbers + head.to(tl.int64) * long + place
            asked = load_rows(query, b, h, place, None, size, D)
            arrived = load_rows(gradient, b, h, place, None, value_size, V)
            away = stands[:, None] - tl.load(centres[0] + b.to(tl.int64) * long + place)[None, :]
            seen = tl.abs(away) <= width
            if CAUSAL or WINDOWED or mask is not None:
                q, first = find_query_indices(place, centres, b, queries), find_first_position(offset, offsets, b)
                seen &= tl.trans(
                    compute_tile_mask(b, h, q, k, first, there, mask, None, queries, window, width, CAUSAL, WINDOWED)
                )
            scores = tl.dot(key, tl.trans(asked), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
            if BELL == 2:
                scores += fall * away * away
            below = tl.where(seen, scores - tl.load(row)[None, :], float("-inf"))
            p = tl.exp2(below)
            weights = p
            if BELL == 1:
                weights = tl.exp2(below + fall * away * away)
            if seed is not None:
                q = find_query_indices(place, centres, b, queries)
                weights *= tl.trans(sample_dropout(seed, head, q, k, queries, keys, dropout))
            back = tl.dot(value, tl.trans(arrived), input_precision=PRECISION).to(tl.float32)
            ds = weights * back - p * tl.load(row + field)[None, :]
            found_value += tl.dot(weights.to(arrived.dtype), arrived, input_precision=PRECISION).to(tl.float32)
            found_key += tl.dot(ds.to(asked.dtype), asked, input_precision=PRECISION).to(tl.float32)
    store_rows(d_keys, b, shared_head, k, k < keys, size, found_key * scale, D)
    store_rows(d_values, b, shared_head, k, k < keys, value_size, found_value, V)
