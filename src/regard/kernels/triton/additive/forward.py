"""Forward of additive attention in two kernels: `compare_kernel` writes scores, `read_kernel` softmax and context.

They are separate because they need different tiles: a score costs hundreds of multiply-adds, a value one. The softmax is
online: m is the largest score so far, l = Σ e^{s - m}, and both the sum and the context so far are rescaled when m grows.
The log-sum-exp log Σ e^s of each query is saved for the backward; `weights_kernel` recomputes the weights from it, or the
scores themselves for another normaliser.
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
    s = tl.load(scores + cells, mask=inside, other=0.0)
    for part in range(1, parts):
        s += tl.load(scores + part * size + cells, mask=inside, other=0.0)
    return s


@triton.jit
@no_type_check
def compute_weights(s, total, head, rows, T, mask):
    """Weights e^{s - log Σ e^s} of a tile; 0 at masked positions."""
    sums = tl.load(total + head * T + rows, mask=rows < T, other=0.0)
    return tl.where(mask, tl.exp(tl.where(mask, s - sums[:, None], 0.0)), 0.0)


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
    mask = load_mask(
        keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
        bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
    )  # fmt: skip
    scores += tl.program_id(1).to(tl.int64) * size + local * tall * wide
    if any_visible(mask):
        local_source = source - source_base
        down, across = tl.program_id(0) // many * ROWS, tl.program_id(0) % many * COLUMNS
        largest = load_largest(row_reach + local * ((tall + 31) // 32), down, ROWS)
        largest += load_largest(column_reach + local_source * ((wide + 31) // 32), across, COLUMNS)
        v += h * v_heads // heads * high
        start = tl.program_id(1) * units
        end = start + units
        row_cells, column_cells = down + build_tile_indices(ROWS, DOWN), across + build_tile_indices(COLUMNS, ACROSS)
        cells = scores + (row_cells[:, None, :, None] * wide + column_cells[None, :, None, :])
        reach: tl.constexpr = MMA_MAX_REACH if FOURS else MAX_REACH
        least: tl.constexpr = MMA_MIN_REACH if FOURS else MIN_REACH if SINGLE else MIN_REACH_HALF
        if (largest > reach) | (largest < least):
            query_rows = tl.where(row_cells < count, begin + row_cells, T)
            s = score_exactly(
                query + head * T * D, key + source * S * D, v, query_rows, column_cells, T, S, D, start, end,
                ROWS, COLUMNS, DOWN, ACROSS, ASSEMBLY,
            )  # fmt: skip
            if WEIGHTS:
                store_weights(
                    scores, tl.reshape(tl.permute(s, (0, 2, 1, 3)), (ROWS, COLUMNS)), total, keep, bits, kinds,
                    tl.reshape(row_cells, (ROWS,)), tl.reshape(column_cells, (COLUMNS,)), head, b, h, begin, count, wide,
                    T, S, first, behind, ahead, bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
                )  # fmt: skip
            else:
                tl.store(cells, s)  # store early to free registers
        elif FOURS:
            q_side, k_side = left + local * tall * (high // 4) + down, right + local_source * wide * (high // 4) + across
            products = score_by_four(q_side, k_side, v, start, end, tall, wide, ROWS, COLUMNS, ASSEMBLY, WORDS)
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
            q_side, k_side = left + (local * tall + down) * high, right + (local_source * wide + across) * high
            s = score_by_pairs(q_side, k_side, v, start, end, ROWS, COLUMNS, DOWN, ACROSS, PAIRS, ASSEMBLY)
            tl.store(cells, s)
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
    mask = load_mask(
        keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
        bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
    )  # fmt: skip
    weight = compute_weights(s, total, head, rows, T, mask)
    tl.store(place + places[:, None] * wide + columns[None, :], weight.to(place.dtype.element_ty))


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
        seed_value = tl.load(seed)
    row_max = tl.full((ROWS,), float("-inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, VALUES), tl.float32)
    lowest = begin + tl.program_id(0) * ROWS
    start_at = tl.maximum(lowest + first - behind, 0) // COLUMNS * COLUMNS
    end = tl.minimum(tl.minimum(lowest + ROWS, T) + first + ahead, S)
    for start in range(start_at, end, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        mask = load_mask(
            keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        if any_visible(mask):
            s = sum_parts(scores, places[:, None] * wide + columns[None, :], mask, parts, size)
            s = tl.where(mask, s, float("-inf"))
            new_max = tl.maximum(row_max, tl.max(s, axis=1))
            finite_max = tl.where(new_max == float("-inf"), 0.0, new_max)  # of a query without a visible key so far
            p = tl.exp(s - finite_max[:, None])
            rescale = tl.exp(row_max - finite_max)
            mass = mass * rescale + tl.sum(p, axis=1)
            row_max = new_max
            if DROPOUT:
                p = p * sample_dropout(seed_value, head, rows, columns, S, dropout, scale)
            read = tl.max(mask.to(tl.int32), axis=0) > 0  # masked values may be NaN
            inside = read[:, None] & (dims < V)[None, :]
            values = tl.load(value + columns.to(tl.int64)[:, None] * V + dims[None, :], mask=inside, other=0.0)
            acc = acc * rescale[:, None] + tl.dot(p.to(values.dtype), values, input_precision=PRECISION)
    empty = mass == 0.0
    mass = tl.where(empty, 1.0, mass)
    acc = acc / mass[:, None]
    cells = (head * T + rows)[:, None] * V + dims[None, :]
    tl.store(context + cells, acc.to(context.dtype.element_ty), mask=(rows < T)[:, None] & (dims < V)[None, :])
    if tl.program_id(1) == 0:
        tl.store(total + head * T + rows, tl.where(empty, float("-inf"), row_max + tl.log(mass)), mask=rows < T)


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "base", "begin", "count", "parts"])
@no_type_check
def weights_kernel(
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
    mask = load_mask(
        keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
        bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
    )  # fmt: skip
    weight = sum_parts(scores + local * tall * wide, places[:, None] * wide + columns[None, :], mask, parts, size)
    if not SCORES:
        weight = compute_weights(weight, total, head, rows, T, mask)
    cells = (head * T + rows)[:, None] * S + columns[None, :]
    tl.store(weights + cells, weight.to(weights.dtype.element_ty), mask=(rows < T)[:, None] & (columns < S)[None, :])
