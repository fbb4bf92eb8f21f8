"""Weights of selected queries, heads and keys: recomputed from the scores, without T x S of the rest."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.tile import (
    LOG2E,
    compute_tile_mask,
    compute_tile_scores,
    find_first_position,
    load_padding,
    load_rows,
)


@triton.jit
@no_type_check
def compute_additive_scores(query, found, v, b, h, group, q, k, inside, there, size):
    """Additive scores Σ_d v_d tanh(q_d + k_d) of a tile, one hidden unit at a time; tanh x = 1 - 2 / (1 + e^{2x})."""
    asked = query[0] + b.to(tl.int64) * query[1] + h.to(tl.int64) * query[2] + q.to(tl.int64) * query[3]
    keyed = found[0] + b.to(tl.int64) * found[1] + (h // group).to(tl.int64) * found[2] + k.to(tl.int64) * found[3]
    scores = tl.zeros([q.shape[0], k.shape[0]], tl.float32)
    for unit in range(size):
        left = tl.load(asked + unit, mask=inside, other=0.0).to(tl.float32)
        right = tl.load(keyed + unit, mask=there, other=0.0).to(tl.float32)
        pace = tl.load(v[0] + h * v[1] + unit).to(tl.float32)
        grown = tl.exp2(tl.minimum((2 * LOG2E) * (left[:, None] + right[None, :]), 80.0))  # beyond it, tanh is 1
        scores += pace * (1 - 2 / (1 + grown))
    return scores * LOG2E


@triton.jit
@no_type_check
def compute_masked_scores(
    query, found, v, bias, keep, mask, b, h, group, q, k, inside, first, queries, keys, window, size, scale, asked,
    ADDITIVE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Scores of a tile, dot product or additive, minus infinity where masked."""
    there = load_padding(keep, b, k, keys)
    seen = compute_tile_mask(b, h, q, k, first, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    if ADDITIVE:
        scores = compute_additive_scores(query, found, v, b, h, group, q, k, inside, there, size)
        scores = tl.where(seen, scores, float("-inf"))
    else:
        key = load_rows(found, b, h // group, k, there, size, D)
        scores = compute_tile_scores(asked, key, bias, b, h, q, k, seen, None, queries, scale, 1.0, 0, PRECISION)
    return scores


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys", "count", "begin", "end"])
@no_type_check
def weights_kernel(
    query, found, v, lse, weights, chosen, chosen_heads,
    bias, keep, mask, offsets,
    offset, window, scale, heads, taken, group, queries, keys, count, size, begin, end,
    ADDITIVE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of the log-sum-exp over all keys, unless it is known, and of the weights of those from `begin` to `end`."""
    number = tl.program_id(1)
    b, h = number // taken, number % taken
    if chosen_heads is not None:
        h = tl.load(chosen_heads + h).to(tl.int32)
    place = tl.program_id(0) * M + tl.arange(0, M)
    inside = place < count
    q = tl.load(chosen + place, mask=inside, other=queries).to(tl.int32)
    first = find_first_position(offset, offsets, b)
    asked = None
    if not ADDITIVE:
        asked = load_rows(query, b, h, q, inside, size, D)
    if lse is None:
        highest = tl.full([M], float("-inf"), tl.float32)
        total = tl.zeros([M], tl.float32)
        for k0 in range(0, keys, N):
            scores = compute_masked_scores(
                query, found, v, bias, keep, mask, b, h, group, q, k0 + tl.arange(0, N), inside, first, queries, keys,
                window, size, scale, asked, ADDITIVE, CAUSAL, WINDOWED, D, PRECISION,
            )  # fmt: skip
            above = tl.maximum(highest, tl.max(scores, 1))
            base = tl.where(above == float("-inf"), 0.0, above)
            total = total * tl.exp2(highest - base) + tl.sum(tl.exp2(scores - base[:, None]), 1)
            highest = above
        ended = tl.where(total == 0, float("inf"), highest + tl.log2(tl.where(total == 0, 1.0, total)))
    else:
        ended = tl.load(lse + (b * heads + h).to(tl.int64) * queries + q, mask=inside, other=float("inf"))
    row = (number.to(tl.int64) * count + place) * (end - begin) - begin
    for k0 in range(begin, end, N):
        k = k0 + tl.arange(0, N)
        scores = compute_masked_scores(
            query, found, v, bias, keep, mask, b, h, group, q, k, inside, first, queries, keys,
            window, size, scale, asked, ADDITIVE, CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        where = inside[:, None] & (k < end)[None, :]
        tl.store(weights + row[:, None] + k[None, :], tl.exp2(scores - ended[:, None]), mask=where)
