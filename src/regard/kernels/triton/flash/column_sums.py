"""What each key receives from all queries, and would receive if each spread itself evenly: no atomics, one order."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import allowed, kept_keys, keys_for, position, queries_for, rows, scored


@triton.jit
@no_type_check
def given(
    query, lse, key, bias, mask, there, b, h, number, q, k, first, window, scale, queries, size,
    FREE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The weights that a tile of queries gives to a tile of keys; of FREE ones each sees all keys that are there."""
    inside = q < queries
    seen = None
    if not FREE:
        seen = allowed(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    asked = rows(query, b, h, q, inside, size, D)
    scores = scored(asked, key, bias, b, h, q, k, seen, None, queries, scale, 1.0, 0, PRECISION)
    ended = tl.load(lse + number.to(tl.int64) * queries + q, mask=inside, other=float("inf"))
    return tl.exp2(scores - ended[:, None])


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def received(
    query, found, lse, total,
    bias, keep, mask, offsets,
    offset, window, scale, heads, group, queries, keys, size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What a tile of keys receives. Where only padding hides keys it is enough to leave these out at the end."""
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    b, h = number // heads, number % heads
    k = k0 + tl.arange(0, N)
    first = position(offset, offsets, b)
    there = kept_keys(keep, b, k, keys)
    key = rows(found, b, h // group, k, there, size, D)
    taken = tl.zeros([M, N], tl.float32)  # a sum over the queries of a tile is an exchange between threads: one, at the end
    low, high = queries_for(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    until = high
    if mask is None and bias is None and not WINDOWED:
        until = low
        if CAUSAL:  # up to the first tile of queries that all stand behind the last key
            until = tl.minimum(tl.maximum(low, (k0 + N - 1 - first + M - 1) // M * M), high)
    for q0 in range(low, until, M):
        taken += given(
            query, lse, key, bias, mask, there, b, h, number, q0 + tl.arange(0, M), k, first, window, scale, queries, size,
            False, CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
    for q0 in range(until, high, M):
        taken += given(
            query, lse, key, bias, mask, there, b, h, number, q0 + tl.arange(0, M), k, first, window, scale, queries, size,
            mask is None and bias is None and not WINDOWED, CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
    tl.store(total + number.to(tl.int64) * keys + k, tl.where(there, tl.sum(taken, 0), 0.0), mask=k < keys)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def counted(
    counts, keep, mask, offsets, offset, window, heads, queries, keys,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """How many keys each query may see."""
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    q = q0 + tl.arange(0, M)
    first = position(offset, offsets, b)
    seen = tl.zeros([M, N], tl.float32)
    low, high = keys_for(q0, first, keys, window, None, None, 0.0, M, N, CAUSAL, WINDOWED)
    for k0 in range(low, high, N):
        k = k0 + tl.arange(0, N)
        there = kept_keys(keep, b, k, keys)
        seen += allowed(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED).to(tl.float32)
    tl.store(counts + number.to(tl.int64) * queries + q, tl.sum(seen, 1), mask=q < queries)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def evened(
    counts, total, keep, mask, offsets, offset, window, heads, queries, keys,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """What a tile of keys would receive if each query spread itself evenly over the keys that it may see."""
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    b, h = number // heads, number % heads
    k = k0 + tl.arange(0, N)
    first = position(offset, offsets, b)
    there = kept_keys(keep, b, k, keys)
    even = tl.zeros([M, N], tl.float32)
    low, high = queries_for(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    for q0 in range(low, high, M):
        q = q0 + tl.arange(0, M)
        seen = allowed(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
        count = tl.load(counts + number.to(tl.int64) * queries + q, mask=q < queries, other=1.0)
        even += tl.where(seen, 1 / tl.maximum(count, 1.0)[:, None], 0.0)
    tl.store(total + number.to(tl.int64) * keys + k, tl.sum(even, 0), mask=k < keys)
