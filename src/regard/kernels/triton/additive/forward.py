"""Forward of additive attention in two kernels: `compare` writes scores, `read` takes their softmax and the context.

They are separate because they need different tiles: a score costs hundreds of multiply-adds, a value one. The softmax is
online: m is the largest score so far, l = Σ e^{s - m}, and both the sum and the context so far are rescaled when m grows.
The log-sum-exp log Σ e^s of each query is saved for the backward; `weigh` recomputes the weights from it, or the scores
themselves for another normaliser.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.additive.mask import any_visible, load_mask, sample_dropout
from regard.kernels.triton.additive.precompute_exp import load_largest
from regard.kernels.triton.additive.score_mma import MMA_MAX_REACH, MMA_MIN_REACH, score_by_four
from regard.kernels.triton.additive.score_rational import (
    MAX_REACH,
    MIN_REACH,
    MIN_REACH_HALF,
    build_tile_indices,
    score_by_pairs,
    score_exactly,
)


@triton.jit
@no_type_check
def sum_parts(scores, cells, inside, parts, size):
    """Scores of a tile: the sum of the partial scores over the hidden units."""
    found = tl.load(scores + cells, mask=inside, other=0.0)
    for part in range(1, parts):
        found += tl.load(scores + part * size + cells, mask=inside, other=0.0)
    return found


@triton.jit
@no_type_check
def compute_weights(s, total, head, rows, T, found):
    """Weights e^{s - log Σ e^s} of a tile; 0 at masked positions."""
    sums = tl.load(total + head * T + rows, mask=rows < T, other=0.0)
    return tl.where(found, tl.exp(tl.where(found, s - sums[:, None], 0.0)), 0.0)


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "base", "source_base", "begin", "count"])
@no_type_check
def compare_kernel(
    query, key, v, left, right, row_reach, column_reach, total, keep, bits, kinds, offsets, scores,
    base, source_base, begin, count, tall, wide, size, units, high,
    heads, key_heads, v_heads, T, S, D, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr,
    PAIRS: tl.constexpr, ASSEMBLY: tl.constexpr, FOURS: tl.constexpr, WORDS: tl.constexpr, SINGLE: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, WEIGHTS: tl.constexpr,
):  # fmt: skip
    """Scores Σ v tanh over `units` hidden units for one tile of `count` queries from `begin` on; empty tiles are skipped.

    Units are taken two at a time, or with FOURS four; one at a time where the numbers of a tile are large, or so small that
    the rational tanh would be less exact than PyTorch's in the same precision. `size` is the stride of partial scores. With
    WEIGHTS, and all units in one part, it writes weights by the log-sum-exp `total` in place of scores, 0 where masked.
    """
    many = wide // COLUMNS
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    source = b * key_heads + h * key_heads // heads
    places = tl.program_id(0) // many * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % many * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.where(places < count, begin + places, T)
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    found = load_mask(
        keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
        bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
    )  # fmt: skip
    scores += tl.program_id(1).to(tl.int64) * size + local * tall * wide
    if any_visible(found):
        near = source - source_base
        down, across = tl.program_id(0) // many * ROWS, tl.program_id(0) % many * COLUMNS
        far = load_largest(row_reach + local * ((tall + 31) // 32), down, ROWS)
        far += load_largest(column_reach + near * ((wide + 31) // 32), across, COLUMNS)
        v += h * v_heads // heads * high
        start = tl.program_id(1) * units
        end = start + units
        below, beside = down + build_tile_indices(ROWS, DOWN), across + build_tile_indices(COLUMNS, ACROSS)
        cells = scores + (below[:, None, :, None] * wide + beside[None, :, None, :])
        reach: tl.constexpr = MMA_MAX_REACH if FOURS else MAX_REACH
        least: tl.constexpr = MMA_MIN_REACH if FOURS else MIN_REACH if SINGLE else MIN_REACH_HALF
        if (far > reach) | (far < least):
            asking = tl.where(below < count, begin + below, T)
            fall = score_exactly(
                query + head * T * D, key + source * S * D, v, asking, beside, T, S, D, start, end,
                ROWS, COLUMNS, DOWN, ACROSS, ASSEMBLY,
            )  # fmt: skip
            if WEIGHTS:
                store_weights(
                    scores, tl.reshape(tl.permute(fall, (0, 2, 1, 3)), (ROWS, COLUMNS)), total, keep, bits, kinds,
                    tl.reshape(below, (ROWS,)), tl.reshape(beside, (COLUMNS,)), head, b, h, begin, count, wide,
                    T, S, first, behind, ahead, bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
                )  # fmt: skip
            else:
                tl.store(cells, fall)  # store early to free registers
        elif FOURS:
            ours, theirs = left + local * tall * (high // 4) + down, right + near * wide * (high // 4) + across
            products = score_by_four(ours, theirs, v, start, end, tall, wide, ROWS, COLUMNS, ASSEMBLY, WORDS)
            if WEIGHTS:
                store_weights(
                    scores, products, total, keep, bits, kinds,
                    down + tl.arange(0, ROWS), across + tl.arange(0, COLUMNS), head, b, h, begin, count, wide,
                    T, S, first, behind, ahead, bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
                )  # fmt: skip
            else:
                flat = (down + tl.arange(0, ROWS))[:, None] * wide + (across + tl.arange(0, COLUMNS))[None, :]
                tl.store(scores + flat, products)
        else:
            ours, theirs = left + (local * tall + down) * high, right + (near * wide + across) * high
            fall = score_by_pairs(ours, theirs, v, start, end, ROWS, COLUMNS, DOWN, ACROSS, PAIRS, ASSEMBLY)
            tl.store(cells, fall)
    elif WEIGHTS:
        tl.store(scores + places[:, None] * wide + columns[None, :], tl.zeros((ROWS, COLUMNS), scores.dtype.element_ty))


@triton.jit
@no_type_check
def store_weights(
    place, s, total, keep, bits, kinds, places, columns, head, b, h, begin, count, wide, T, S, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Write the weights of a tile from its scores; the mask is recomputed, which saves registers."""
    rows = tl.where(places < count, begin + places, T)
    found = load_mask(
        keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
        bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
    )  # fmt: skip
    share = compute_weights(s, total, head, rows, T, found)
    tl.store(place + places[:, None] * wide + columns[None, :], share.to(place.dtype.element_ty))


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "base", "begin", "count", "parts"])
@no_type_check
def read_kernel(
    scores, value, keep, bits, kinds, offsets, seed, context, total, base, begin, count, tall, wide, parts, size,
    heads, value_heads, T, S, V, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, dropout, scale,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Context and log-sum-exp of ROWS queries of one head, for VALUES of the value's dimensions."""
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = tl.where(places < count, begin + places, T)
    dims = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    value += (b * value_heads + h * value_heads // heads) * S * V
    scores += local * tall * wide
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    if DROPOUT:
        drawn = tl.load(seed)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    got = tl.zeros((ROWS, VALUES), tl.float32)
    lowest = begin + tl.program_id(0) * ROWS
    start_at = tl.maximum(lowest + first - behind, 0) // COLUMNS * COLUMNS
    end = tl.minimum(tl.minimum(lowest + ROWS, T) + first + ahead, S)
    for start in range(start_at, end, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        found = load_mask(
            keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        if any_visible(found):
            s = sum_parts(scores, places[:, None] * wide + columns[None, :], found, parts, size)
            s = tl.where(found, s, float("-inf"))
            higher = tl.maximum(top, tl.max(s, axis=1))
            steady = tl.where(higher == float("-inf"), 0.0, higher)  # of a query without a visible key so far
            p = tl.exp(s - steady[:, None])
            shrink = tl.exp(top - steady)
            mass = mass * shrink + tl.sum(p, axis=1)
            top = higher
            if DROPOUT:
                p = p * sample_dropout(drawn, head, rows, columns, S, dropout, scale)
            read_by_some = tl.max(found.to(tl.int32), axis=0) > 0  # masked values may be NaN
            inside = read_by_some[:, None] & (dims < V)[None, :]
            values = tl.load(value + columns.to(tl.int64)[:, None] * V + dims[None, :], mask=inside, other=0.0)
            got = got * shrink[:, None] + tl.dot(p.to(values.dtype), values, input_precision=PRECISION)
    blind = mass == 0.0
    mass = tl.where(blind, 1.0, mass)
    got = got / mass[:, None]
    cells = (head * T + rows)[:, None] * V + dims[None, :]
    tl.store(context + cells, got.to(context.dtype.element_ty), mask=(rows < T)[:, None] & (dims < V)[None, :])
    if tl.program_id(1) == 0:
        tl.store(total + head * T + rows, tl.where(blind, float("-inf"), top + tl.log(mass)), mask=rows < T)


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "base", "begin", "count", "parts"])
@no_type_check
def weigh_kernel(
    scores, total, keep, bits, kinds, offsets, weights, base, begin, count, tall, wide, parts, size,
    heads, T, S, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, SCORES: tl.constexpr,
):  # fmt: skip
    """Write the weights e^{s - log Σ e^s} of one tile, 0 at masked positions; or, with SCORES, the scores."""
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    rows = tl.where(places < count, begin + places, T)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    found = load_mask(
        keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
        bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
    )  # fmt: skip
    share = sum_parts(scores + local * tall * wide, places[:, None] * wide + columns[None, :], found, parts, size)
    if not SCORES:
        share = compute_weights(share, total, head, rows, T, found)
    cells = (head * T + rows)[:, None] * S + columns[None, :]
    tl.store(weights + cells, share.to(weights.dtype.element_ty), mask=(rows < T)[:, None] & (columns < S)[None, :])
