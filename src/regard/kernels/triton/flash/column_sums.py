"""Column sums of the weights, and of uniform weights over the allowed keys, deterministic and without atomics."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import (
    compute_tile_mask,
    compute_tile_scores,
    find_first_position,
    find_key_bounds,
    find_query_bounds,
    load_padding,
    load_rows,
)


@triton.jit
@no_type_check
def compute_tile_weights(
    query, lse, k, bias, mask, valid, b, h, number, m, n, first, window, scale, queries, size,
    FREE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Weights of a tile of queries and a tile of keys; FREE tiles are masked by padding alone."""
    inside = m < queries
    allowed = None
    if not FREE:
        allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    q = load_rows(query, b, h, m, inside, size, D)
    scores = compute_tile_scores(q, k, bias, b, h, m, n, allowed, None, queries, scale, 1.0, 0, PRECISION)
    row_lse = tl.load(lse + number.to(tl.int64) * queries + m, mask=inside, other=float("inf"))
    return tl.exp2(scores - row_lse[:, None])


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def sum_columns(
    query, key, lse, total,
    bias, keep, mask, offsets,
    offset, window, scale, heads, group, queries, keys, size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of the column sums of a tile of keys; a padding mask alone is applied at the end."""
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    b, h = number // heads, number % heads
    n = k0 + tl.arange(0, N)
    first = find_first_position(offset, offsets, b)
    valid = load_padding(keep, b, n, keys)
    k = load_rows(key, b, h // group, n, valid, size, D)
    acc = tl.zeros([M, N], tl.float32)  # one reduction across threads, at the end
    low, high = find_query_bounds(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    until = high
    if mask is None and bias is None and not WINDOWED:
        until = low
        if CAUSAL:  # up to the first tile whose queries all see the last key
            until = tl.minimum(tl.maximum(low, (k0 + N - 1 - first + M - 1) // M * M), high)
    for q0 in range(low, until, M):
        acc += compute_tile_weights(
            query, lse, k, bias, mask, valid, b, h, number, q0 + tl.arange(0, M), n, first, window, scale, queries, size,
            False, CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
    for q0 in range(until, high, M):
        acc += compute_tile_weights(
            query, lse, k, bias, mask, valid, b, h, number, q0 + tl.arange(0, M), n, first, window, scale, queries, size,
            mask is None and bias is None and not WINDOWED, CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
    tl.store(total + number.to(tl.int64) * keys + n, tl.where(valid, tl.sum(acc, 0), 0.0), mask=n < keys)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def count_keys(
    counts, keep, mask, offsets, offset, window, heads, queries, keys,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Kernel that counts the visible keys of each query."""
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    m = q0 + tl.arange(0, M)
    first = find_first_position(offset, offsets, b)
    visible = tl.zeros([M, N], tl.float32)
    low, high = find_key_bounds(q0, first, keys, window, None, None, 0.0, M, N, CAUSAL, WINDOWED)
    for k0 in range(low, high, N):
        n = k0 + tl.arange(0, N)
        valid = load_padding(keep, b, n, keys)
        visible += compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED).to(
            tl.float32
        )
    tl.store(counts + number.to(tl.int64) * queries + m, tl.sum(visible, 1), mask=m < queries)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def sum_uniform(
    counts, total, keep, mask, offsets, offset, window, heads, queries, keys,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Kernel of the column sums of uniform weights for a tile of keys."""
    k0, number = tl.program_id(0) * N, tl.program_id(1)
    b, h = number // heads, number % heads
    n = k0 + tl.arange(0, N)
    first = find_first_position(offset, offsets, b)
    valid = load_padding(keep, b, n, keys)
    acc = tl.zeros([M, N], tl.float32)
    low, high = find_query_bounds(k0, first, queries, window, M, N, CAUSAL, WINDOWED)
    for q0 in range(low, high, M):
        m = q0 + tl.arange(0, M)
        allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
        count = tl.load(counts + number.to(tl.int64) * queries + m, mask=m < queries, other=1.0)
        acc += tl.where(allowed, 1 / tl.maximum(count, 1.0)[:, None], 0.0)
    tl.store(total + number.to(tl.int64) * keys + n, tl.sum(acc, 0), mask=n < keys)
