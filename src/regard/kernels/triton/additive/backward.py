"""Backward of additive attention to the scores: recomputes the softmax from the log-sum-exp and writes dScores.

    ds = a (da - Σ a da)

`backward_qkv` continues to dQ, dK and dv. Scores are recomputed unless they were saved, a chunk at a time, so that ds
exists for that chunk alone. In bfloat16 without dropout, where there are several chunks, `replace_weights` writes ds in
place of the weights: da = dO Vᵀ is computed twice, for Σ a da and for ds. That sum equals dO · O too; but O in half
precision is so inexact that where values have a mean ds would be mostly its error.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.additive.forward import compute_weights, sum_parts
from regard.kernels.triton.additive.mask import load_mask, sample_dropout


@triton.jit
@no_type_check
def load_gradients(
    scores, da, total, d_weights, seed_value, head, rows, columns, cells, da_cells, T, S, mask, parts, size, dropout, scale,
    DROPOUT: tl.constexpr, D_WEIGHTS: tl.constexpr,
):  # fmt: skip
    """Weights before and after dropout, and a da of one tile; 0 at masked positions."""
    a = compute_weights(sum_parts(scores, cells, mask, parts, size), total, head, rows, T, mask)
    dropped_a = a
    if DROPOUT:
        dropped_a = a * sample_dropout(seed_value, head, rows, columns, S, dropout, scale)
    a_da = dropped_a * tl.load(da + da_cells, mask=mask, other=0.0).to(tl.float32)
    if D_WEIGHTS:
        places = (head * T + rows)[:, None] * S + columns[None, :]
        a_da += a * tl.load(d_weights + places, mask=mask, other=0.0).to(tl.float32)
    return a, dropped_a, a_da


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "base", "begin", "count", "parts"])
@no_type_check
def write_dscores(
    scores, dscores, da, total, d_weights, dropped, keep, bits, kinds, offsets, seed,
    base, begin, count, tall, wide, parts, size, heads, T, S, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, dropout, scale,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, DROPOUT: tl.constexpr, D_WEIGHTS: tl.constexpr,
):  # fmt: skip
    """Compute ds = a (da - Σ a da) and the weights after dropout from the scores of ROWS queries.

    ds may overwrite the scores, and the weights may overwrite da. `d_weights` is the gradient of the returned weights, if
    requested. Σ a is 1, or 0 of fully masked queries, but for rounding, which would add a multiple of what all da have in
    common: so Σ a da is divided by it.
    """
    local = tl.program_id(1).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = tl.where(places < count, begin + places, T)
    scores += local * tall * wide
    dscores += local * tall * wide
    da += local * count * S
    dropped += local * count * S
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    seed_value = 0
    if DROPOUT:
        seed_value = tl.load(seed)
    mass = tl.zeros((ROWS, COLUMNS), tl.float32)
    mean = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, wide, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        mask = load_mask(
            keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        cells, da_cells = places[:, None] * wide + columns[None, :], places.to(tl.int64)[:, None] * S + columns[None, :]
        a, dropped_a, a_da = load_gradients(
            scores, da, total, d_weights, seed_value, head, rows, columns, cells, da_cells, T, S, mask, parts, size,
            dropout, scale, DROPOUT, D_WEIGHTS,
        )  # fmt: skip
        mass += a
        mean += a_da
    correction = tl.sum(mean, axis=1) / tl.maximum(tl.sum(mass, axis=1), 1e-30, propagate_nan=tl.PropagateNan.ALL)
    for start in range(0, wide, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        mask = load_mask(
            keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        cells, da_cells = places[:, None] * wide + columns[None, :], places.to(tl.int64)[:, None] * S + columns[None, :]
        a, dropped_a, a_da = load_gradients(
            scores, da, total, d_weights, seed_value, head, rows, columns, cells, da_cells, T, S, mask, parts, size,
            dropout, scale, DROPOUT, D_WEIGHTS,
        )  # fmt: skip
        ds = tl.where(mask, a_da - a * correction[:, None], 0.0)
        tl.store(dscores + cells, ds.to(dscores.dtype.element_ty), mask=(columns < wide)[None, :])
        inside = (places < count)[:, None] & (columns < S)[None, :]
        tl.store(dropped + da_cells, dropped_a.to(dropped.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["base", "begin", "count", "T", "S"])
@no_type_check
def replace_weights(
    weights, value, d_context, sums, base, begin, count, tall, wide, heads, value_heads, T, S, V,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, VALUES: tl.constexpr, TILES: tl.constexpr, PRECISION: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    """Replace a tile of weights by ds; or, with SUMS, which run first, write Σ a da and Σ a of its queries.

    Masked keys have weight 0, and values that may be NaN.
    """
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    places, columns = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    d_context += (head * T + begin) * V
    value += (head // heads * value_heads + head % heads * value_heads // heads) * S * V
    da = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, V, VALUES):
        dims = start + tl.arange(0, VALUES)
        do_cells = places.to(tl.int64)[:, None] * V + dims[None, :]
        do = tl.load(d_context + do_cells, mask=(places < count)[:, None] & (dims < V)[None, :], other=0.0)
        value_cells = columns.to(tl.int64)[None, :] * V + dims[:, None]
        values = tl.load(value + value_cells, mask=(columns < S)[None, :] & (dims < V)[:, None], other=0.0)
        da += tl.dot(do, values, input_precision=PRECISION)
    cells = weights + local * tall * wide + places[:, None] * wide + columns[None, :]
    a = tl.load(cells).to(tl.float32)
    da = tl.where(a == 0.0, 0.0, da)
    tile_count = tl.num_programs(0)
    sums += local * 2 * tile_count * tall
    if SUMS:
        tl.store(sums + tl.program_id(0) * tall + places, tl.sum(a * da, axis=1))
        tl.store(sums + (tile_count + tl.program_id(0)) * tall + places, tl.sum(a, axis=1))
    else:
        a_da, mass = tl.zeros((ROWS, TILES), tl.float32), tl.zeros((ROWS, TILES), tl.float32)
        for start in range(0, tile_count, TILES):
            tile = start + tl.arange(0, TILES)[None, :]
            parts = sums + tile * tall + places[:, None]
            a_da += tl.load(parts, mask=tile < tile_count, other=0.0)
            mass += tl.load(parts + tile_count * tall, mask=tile < tile_count, other=0.0)
        correction = tl.sum(a_da, axis=1) / tl.maximum(tl.sum(mass, axis=1), 1e-30, propagate_nan=tl.PropagateNan.ALL)
        ds = tl.where(a == 0.0, 0.0, a * (da - correction[:, None]))  # masked keys have all bits 0
        even, odd = tl.split(tl.reshape(ds, (ROWS, COLUMNS // 2, 2)))
        pairs = (places * (wide // 2))[:, None] + tl.program_id(0) * (COLUMNS // 2) + tl.arange(0, COLUMNS // 2)[None, :]
        tl.store((weights + local * tall * wide).to(tl.pointer_type(tl.int32)) + pairs, pack_pair(even, odd))


@triton.jit
@no_type_check
def pack_pair(even, odd):
    """Pack two numbers into a word: its lower half is the first in bfloat16; all of it, as float32, is about the second.

    So unpacking is a shift for the one and nothing for the other. The upper half is chosen so that the word is closest to
    the second, whose error is no larger than in bfloat16. Infinities become NaN.
    """
    low = even.to(tl.bfloat16).to(tl.uint16, bitcast=True).to(tl.int32)
    bits = odd.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    size = tl.where(size >= 0x7F800000, 0x7FC00000, size)
    high = (tl.maximum(size, low) - low + 0x8000) & 0x7FFF0000
    return (bits & -0x80000000) | high | low
