"""The way back of additive attention, from log Σ e^s: `slope` finds the weights again, `gather` sums up what flows back.

    ds = a (da - Σ a da),    dq = 4 v Σ_k ds r (1 - r),    dk = 4 v Σ_q ds r (1 - r),    dv = Σ ds (1 - 2 r)

Scores are computed anew, a chunk of queries at a time, so that ds exists for that chunk alone. dq and dk are the same sum
with the roles changed, one program for each tile of rows and hidden units, so that nothing is added in an order that
changes from run to run.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.additive_triton.rational import REACH, compare, denominator, exponential, plain, reciprocal
from regard.kernels.additive_triton.visible import kept, seen, some


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "begin", "count", "base"])
@no_type_check
def slope(
    query, key, v, query_reach, key_reach, keep, mask, offsets, seed, total, given, slopes, weights, dropped,
    base, begin, count,
    heads, key_heads, v_heads, T, S, D, first, behind, ahead, mask_b, mask_h, mask_t, mask_s, dropout, scale,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PAIRS: tl.constexpr, EVEN: tl.constexpr, ASSEMBLY: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, DROPOUT: tl.constexpr, GIVEN: tl.constexpr,
):  # fmt: skip
    """Turn da of `count` queries from `begin` on into a da, in place, and give the weights, before and after dropout.

    `given` is what flows into the weights themselves, where somebody asked for them.
    """
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    rows = tl.where(places < count, begin + places, T)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    source = b * key_heads + h * key_heads // heads
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    found = seen(keep, mask, b, h, rows, columns, T, S, first, behind, ahead, mask_b, mask_h, mask_t, mask_s, KEEP, MASK)
    cells = (local * count + places)[:, None] * S + columns[None, :]
    inside = (places < count)[:, None] & (columns < S)[None, :]
    a = tl.zeros((ROWS, COLUMNS), tl.float32)
    share = tl.zeros((ROWS, COLUMNS), tl.float32)
    flow = tl.zeros((ROWS, COLUMNS), tl.float32)
    if some(found):
        far = tl.max(tl.load(query_reach + head * T + rows, mask=rows < T, other=0.0), axis=0)
        reach = tl.max(tl.load(key_reach + source * S + columns, mask=columns < S, other=0.0), axis=0)
        s = compare(
            query + head * D * T, key + source * D * S, v + h * v_heads // heads * D, tl.maximum(reach, far) > REACH,
            rows, columns, T, S, D, ROWS, COLUMNS, PAIRS, EVEN, ASSEMBLY,
        )  # fmt: skip
        sums = tl.load(total + head * T + rows, mask=rows < T, other=0.0)
        a = tl.where(found, tl.exp(tl.where(found, s - sums[:, None], 0.0)), 0.0)
        share = a
        if DROPOUT:
            share = a * kept(tl.load(seed), head, rows, columns, S, dropout, scale)
        flowing = tl.load(slopes + cells, mask=found, other=0.0)
        flow = share * flowing
        if GIVEN:
            flow += a * tl.load(given + (head * T + rows)[:, None] * S + columns[None, :], mask=found, other=0.0).to(
                tl.float32
            )
    tl.store(slopes + cells, flow, mask=inside)
    tl.store(weights + cells, a, mask=inside)
    tl.store(dropped + cells, share.to(dropped.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def number(places, present):
    """What is there, or 0: for what nobody may see ds is 0, and NaN would survive that; where it is seen, ds is NaN too."""
    data = tl.load(places, mask=present, other=0.0).to(tl.float32)
    return tl.where(data == data, data, 0.0)


@triton.jit(do_not_specialize=["base", "R", "C", "row_begin", "column_begin", "row_count", "column_count"])
@no_type_check
def gather(
    rows_of, columns_of, row_reach, column_reach, v, slopes, found, falls, steeps,
    base, heads, row_heads, column_heads, v_heads, R, C, D, row_begin, column_begin, row_count, column_count,
    row_stride, column_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, UNITS: tl.constexpr, ASSEMBLY: tl.constexpr,
    ADD: tl.constexpr, FALLS: tl.constexpr, STEEPS: tl.constexpr,
):  # fmt: skip
    """4 v Σ ds r (1 - r) over the columns, for a tile of rows and hidden units; queries are the rows for dq, keys for dk.

    FALLS asks for Σ ds tanh over all rows of the tile too, and STEEPS for 4 v Σ ds r (1 - r) over them.
    """
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = places < row_count
    units = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    wide = units < D
    row_source = b * row_heads + h * row_heads // heads
    column_source = b * column_heads + h * column_heads // heads
    rows_of += (row_source * R + row_begin) * D
    columns_of += (column_source * C + column_begin) * D
    row_reach += row_source * R + row_begin
    column_reach += column_source * C + column_begin
    slopes += local * row_count * column_count
    present = inside[:, None] & wide[None, :]
    q = number(rows_of + places.to(tl.int64)[:, None] * D + units[None, :], present)
    left = exponential(tl.minimum(tl.maximum(q, -REACH), REACH))
    far = tl.max(tl.load(row_reach + places, mask=inside, other=0.0), axis=0)
    fall = tl.zeros((ROWS, UNITS), tl.float32)
    steep = tl.zeros((ROWS, UNITS), tl.float32)
    level = tl.zeros((ROWS, 1), tl.float32)
    for start in range(0, column_count, COLUMNS):
        block = start + tl.arange(0, COLUMNS)
        there = inside[:, None] & (block < column_count)[None, :]
        tile = tl.load(slopes + places[:, None] * row_stride + block[None, :] * column_stride, mask=there, other=0.0)
        reach = tl.max(tl.load(column_reach + block, mask=block < column_count, other=0.0), axis=0)
        wild = tl.maximum(reach, far) > REACH
        end = tl.minimum(start + COLUMNS, column_count)
        if some(tile != 0.0) & wild:
            for c in range(start, end):
                k = number(columns_of + c * D + units, wide)
                ds = tl.load(slopes + places * row_stride + c * column_stride, mask=inside, other=0.0)[:, None]
                r = plain(q + k[None, :], ASSEMBLY)
                level += ds
                fall += ds * r
                steep += ds * r - ds * r * r
        elif some(tile != 0.0):
            for c in range(start, end, 2):
                second = c + 1 < end
                k1, k2 = number(columns_of + c * D + units, wide), number(columns_of + (c + 1) * D + units, wide & second)
                cells = slopes + places * row_stride + c * column_stride
                ds1 = tl.load(cells, mask=inside, other=0.0)[:, None]
                ds2 = tl.load(cells + column_stride, mask=inside & second, other=0.0)[:, None]
                x = denominator(left, exponential(k1)[None, :])
                y = denominator(left, exponential(k2)[None, :])
                shared = reciprocal(x * y, ASSEMBLY)
                r1, r2 = shared * y, shared * x
                flow1, flow2 = ds1 * r1, ds2 * r2
                level += ds1 + ds2
                fall += flow1 + flow2
                steep += flow1 - flow1 * r1 + flow2 - flow2 * r2
    w = tl.load(v + h * v_heads // heads * D + units, mask=wide, other=0.0).to(tl.float32)
    cells = found + (head * R + row_begin + places)[:, None] * D + units[None, :]
    present = inside[:, None] & wide[None, :]
    whole = 4.0 * w[None, :] * steep
    if ADD:
        whole += tl.load(cells, mask=present, other=0.0).to(tl.float32)
    tl.store(cells, whole.to(found.dtype.element_ty), mask=present)
    part = (local * tl.num_programs(0) + tl.program_id(0)) * D + units
    if FALLS:
        tl.store(falls + part, tl.sum(level - 2.0 * fall, axis=0), mask=wide)
    if STEEPS:
        tl.store(steeps + part, 4.0 * w * tl.sum(steep, axis=0), mask=wide)
