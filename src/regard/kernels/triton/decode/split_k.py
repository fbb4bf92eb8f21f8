"""Partial attention of few queries over a split of the keys; additive attention's `join_kernel` combines the splits."""

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
    query, key, value, raw_scores, parts, tops, masses,
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
    slot = tl.arange(0, M)
    inside = slot < group * queries
    h = (key_head * group + slot // queries)[:, None]
    m = tl.where(inside, slot % queries, queries)  # rows beyond the last query are fully masked
    first = find_first_position(offset, offsets, b)
    q = load_rows(query, b, h, m, inside, size, D)

    low, high = find_key_bounds(0, first, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)
    split_keys = tl.cdiv(tl.cdiv(tl.maximum(high - low, 0), splits), N) * N
    begin = low + tl.program_id(0) * split_keys
    row = (b * heads * queries + h * queries + m[:, None]).to(tl.int64)
    row_max = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, V], tl.float32)
    for k0 in range(begin, tl.minimum(begin + split_keys, high), N):
        n = k0 + tl.arange(0, N)
        valid = load_padding(keep, b, n, keys)
        allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
        k = load_rows(key, b, key_head, n, valid, size, D)
        v = load_rows(value, b, key_head, n, valid, value_size, V)
        scores = compute_tile_scores(q, k, bias, b, h, m, n, allowed, None, queries, scale, 1.0, 0, PRECISION)
        if raw_scores is not None:
            tl.store(raw_scores + row * keys + n[None, :], LN2 * scores, mask=inside[:, None] & (n < keys)[None, :])
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        base = tl.where(new_max == float("-inf"), 0.0, new_max)
        rescale = tl.exp2(row_max - base)
        p = tl.exp2(scores - base[:, None])
        total = rescale * total + tl.sum(p, 1)
        acc = acc * rescale[:, None] + tl.dot(p.to(v.dtype), v, input_precision=PRECISION).to(tl.float32)
        row_max = new_max

    part = row * splits + tl.program_id(0)
    column = tl.arange(0, V)[None, :]
    tl.store(parts + part * value_size + column, acc, mask=inside[:, None] & (column < value_size))
    tl.store(tops + part, LN2 * row_max[:, None], mask=inside[:, None])
    tl.store(masses + part, total[:, None], mask=inside[:, None])
