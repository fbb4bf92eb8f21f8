"""The gradients of keys and values whose queries place their windows: what they read stands in the order of these windows.

Tiles are turned, keys by queries, so that weights are multiplied where they are found: they are the left side of both sums,
and need not go through shared memory. Queries by keys, the compiler also lets no two products of a tile overlap (ptxas'
C7515). Formulas are those of backward.py.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import (
    FAR,
    LOG2E,
    allowed,
    asking,
    falling,
    kept_keys,
    padded,
    position,
    rows,
    surviving,
    windows_for,
    write,
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
    """The gradients of a tile of keys and values, summed over all query heads that share them.

    Queries, what flows into their contexts, and their log-sum-exp and Δ are as `of_queries` has put them beside each other:
    in their order and up to a whole tile, with zeros behind the end, so that nothing is asked of a place before it is read.
    """
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    shared = heads // group
    b, shared_head = number // shared, number % shared
    k = k0 + tl.arange(0, N)
    there = kept_keys(keep, b, k, keys)
    key = rows(found, b, shared_head, k, there, size, D)
    value = rows(values, b, shared_head, k, there, value_size, V)
    stands = tl.where(there, k.to(tl.float32), FAR)
    found_key = tl.zeros([N, D], tl.float32)
    found_value = tl.zeros([N, V], tl.float32)
    low, high = windows_for(k0, centres, b, keys, width, N)
    long, fall = padded(queries), falling(width)
    field = tl.num_programs(1).to(tl.int64) * group * long  # from what is told of all queries to what is told next
    for member in range(group):
        h = shared_head * group + member
        head = b * heads + h
        for q0 in range(low // M * M, high, M):
            place = q0 + tl.arange(0, M)
            row = numbers + head.to(tl.int64) * long + place
            asked = rows(query, b, h, place, None, size, D)
            arrived = rows(gradient, b, h, place, None, value_size, V)
            away = stands[:, None] - tl.load(centres[0] + b.to(tl.int64) * long + place)[None, :]
            seen = tl.abs(away) <= width
            if CAUSAL or WINDOWED or mask is not None:
                q, first = asking(place, centres, b, queries), position(offset, offsets, b)
                seen &= tl.trans(allowed(b, h, q, k, first, there, mask, None, queries, window, width, CAUSAL, WINDOWED))
            scores = tl.dot(key, tl.trans(asked), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
            if BELL == 2:
                scores += fall * away * away
            below = tl.where(seen, scores - tl.load(row)[None, :], float("-inf"))
            p = tl.exp2(below)
            weights = p
            if BELL == 1:
                weights = tl.exp2(below + fall * away * away)
            if seed is not None:
                q = asking(place, centres, b, queries)
                weights *= tl.trans(surviving(seed, head, q, k, queries, keys, dropout))
            back = tl.dot(value, tl.trans(arrived), input_precision=PRECISION).to(tl.float32)
            ds = weights * back - p * tl.load(row + field)[None, :]
            found_value += tl.dot(weights.to(arrived.dtype), arrived, input_precision=PRECISION).to(tl.float32)
            found_key += tl.dot(ds.to(asked.dtype), asked, input_precision=PRECISION).to(tl.float32)
    write(d_keys, b, shared_head, k, k < keys, size, found_key * scale, D)
    write(d_values, b, shared_head, k, k < keys, value_size, found_value, V)
