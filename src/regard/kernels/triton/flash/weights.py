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
def compute_additive_scores(query, key, v, b, h, group, m, n, inside, valid, size):
    """Additive scores Σ_d v_d tanh(q_d + k_d) of a tile, one hidden unit at a time; tanh x = 1 - 2 / (1 + e^{2x})."""
    query_rows = query[0] + b.to(tl.int64) * query[1] + h.to(tl.int64) * query[2] + m.to(tl.int64) * query[3]
    key_rows = key[0] + b.to(tl.int64) * key[1] + (h // group).to(tl.int64) * key[2] + n.to(tl.int64) * key[3]
    scores = tl.zeros([m.shape[0], n.shape[0]], tl.float32)
    for unit in range(size):
        q_unit = tl.load(query_rows + unit, mask=inside, other=0.0).to(tl.float32)
        k_unit = tl.load(key_rows + unit, mask=valid, other=0.0).to(tl.float32)
        weight = tl.load(v[0] + h * v[1] + unit).to(tl.float32)
        exponential = tl.exp2(tl.minimum((2 * LOG2E) * (q_unit[:, None] + k_unit[None, :]), 80.0))  # beyond it, tanh is 1
        scores += weight * (1 - 2 / (1 + exponential))
    return scores * LOG2E


@triton.jit
@no_type_check
def compute_masked_scores(
    query, key, v, bias, keep, mask, b, h, group, m, n, inside, first, queries, keys, window, size, scale, q,
    ADDITIVE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Scores of a tile, dot product or additive, minus infinity where masked."""
    valid = load_padding(keep, b, n, keys)
    allowed = compute_tile_mask(b, h, m, n, first, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    if ADDITIVE:
        scores = compute_additive_scores(query, key, v, b, h, group, m, n, inside, valid, size)
        scores = tl.where(allowed, scores, float("-inf"))
    else:
        k = load_rows(key, b, h // group, n, valid, size, D)
        scores = compute_tile_scores(q, k, bias, b, h, m, n, allowed, None, queries, scale, 1.0, 0, PRECISION)
    return scores


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys", "count", "begin", "end"])
@no_type_check
def weights_kernel(
    query, key, v, lse, weights, chosen, chosen_heads,
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
    slot = tl.program_id(0) * M + tl.arange(0, M)
    inside = slot < count
    m = tl.load(chosen + slot, mask=inside, other=queries).to(tl.int32)
    first = find_first_position(offset, offsets, b)
    q = None
    if not ADDITIVE:
        q = load_rows(query, b, h, m, inside, size, D)
    if lse is None:
        row_max = tl.full([M], float("-inf"), tl.float32)
        total = tl.zeros([M], tl.float32)
        for k0 in range(0, keys, N):
            scores = compute_masked_scores(
                query, key, v, bias, keep, mask, b, h, group, m, k0 + tl.arange(0, N), inside, first, queries, keys,
                window, size, scale, q, ADDITIVE, CAUSAL, WINDOWED, D, PRECISION,
            )  # fmt: skip
            new_max = tl.maximum(row_max, tl.max(scores, 1))
            base = tl.where(new_max == float("-inf"), 0.0, new_max)
            total = total * tl.exp2(row_max - base) + tl.sum(tl.exp2(scores - base[:, None]), 1)
            row_max = new_max
        row_lse = tl.where(total == 0, float("inf"), row_max + tl.log2(tl.where(total == 0, 1.0, total)))
    else:
        row_lse = tl.load(lse + (b * heads + h).to(tl.int64) * queries + m, mask=inside, other=float("inf"))
    row = (number.to(tl.int64) * count + slot) * (end - begin) - begin
    for k0 in range(begin, end, N):
        n = k0 + tl.arange(0, N)
        scores = compute_masked_scores(
            query, key, v, bias, keep, mask, b, h, group, m, n, inside, first, queries, keys,
            window, size, scale, q, ADDITIVE, CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        stored = inside[:, None] & (n < end)[None, :]
        tl.store(weights + row[:, None] + n[None, :], tl.exp2(scores - row_lse[:, None]), mask=stored)
