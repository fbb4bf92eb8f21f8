"""Partial attention of few queries over a split of the keys; additive attention's `join` combines the splits."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import (
    LN2,
    compute_tile_mask,
    compute_tile_scores,
    find_first_position,
    find_key_bounds,
    load_padding,
    load_rows,
)


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys", "splits"])
@no_type_check
def split_kernel(
    query, found, values, kept_scores, parts, tops, masses,
    bias, keep, mask, offsets,
    offset, window, scale, heads, group, queries, keys, size, value_size, splits,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of one split: the queries of all heads that share a key head are one tile, so that its keys are read once.

    Only the keys visible to a row under a causal or local mask with its offset are split over the programs, so that a KV
    cache with spare capacity costs no more than its filled part.
    """
    number = tl.program_id(1)
    key_heads = heads // group
    b, key_head = number // key_heads, number % key_heads
    place = tl.arange(0, M)
    inside = place < group * queries
    h = (key_head * group + place // queries)[:, None]
    q = tl.where(inside, place % queries, queries)  # rows beyond the last query are fully masked
    first = find_first_position(offset, offsets, b)
    asked = load_rows(query, b, h, q, inside, size, D)

    low, high = find_key_bounds(0, first, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)
    reach = tl.cdiv(tl.cdiv(tl.maximum(high - low, 0), splits), N) * N
    begin = low + tl.program_id(0) * reach
    row = (b * heads * queries + h * queries + q[:, None]).to(tl.int64)
    highest = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    read = tl.zeros([M, V], tl.float32)
    for k0 in range(begin, tl.minimum(begin + reach, high), N):
        k = k0 + tl.arange(0, N)
        there = load_padding(keep, b, k, keys)
        seen = compute_tile_mask(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
        key = load_rows(found, b, key_head, k, there, size, D)
        value = load_rows(values, b, key_head, k, there, value_size, V)
        scores = compute_tile_scores(asked, key, bias, b, h, q, k, seen, None, queries, scale, 1.0, 0, PRECISION)
        if kept_scores is not None:
            tl.store(kept_scores + row * keys + k[None, :], LN2 * scores, mask=inside[:, None] & (k < keys)[None, :])
        above = tl.maximum(highest, tl.max(scores, 1))
        base = tl.where(above == float("-inf"), 0.0, above)
        falls = tl.exp2(highest - base)
        p = tl.exp2(scores - base[:, None])
        total = falls * total + tl.sum(p, 1)
        read = read * falls[:, None] + tl.dot(p.to(value.dtype), value, input_precision=PRECISION).to(tl.float32)
        highest = above

    part = row * splits + tl.program_id(0)
    column = tl.arange(0, V)[None, :]
    tl.store(parts + part * value_size + column, read, mask=inside[:, None] & (column < value_size))
    tl.store(tops + part, LN2 * highest[:, None], mask=inside[:, None])
    tl.store(masses + part, total[:, None], mask=inside[:, None])
