"""The way back of additive attention, from log Σ e^s: `slope` finds what flows into the scores, `gather` what leaves them.

    ds = a (da - Σ a da),    dq = 4 v Σ_k ds r (1 - r),    dk = 4 v Σ_q ds r (1 - r),    dv = Σ ds (1 - 2 r)

Scores are computed anew unless they were kept, a chunk at a time, so that ds exists for that chunk alone. dq and dk are the
same sum with the roles changed: a program has a tile of rows and hidden units and goes through the columns, two of which
share a reciprocal. Where several programs share a sum, each writes its own part, so that nothing is added in an order that
changes. `both` finds them together.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.additive_triton.forward import whole
from regard.kernels.additive_triton.powers import farthest
from regard.kernels.additive_triton.rational import REACH, exponential, plain, reciprocal
from regard.kernels.additive_triton.visible import kept, seen, some


@triton.jit
@no_type_check
def flowing(
    scores, da, total, given, drawn, head, rows, columns, cells, flows, T, S, found, parts, size, dropout, scale,
    DROPOUT: tl.constexpr, GIVEN: tl.constexpr,
):  # fmt: skip
    """Weights before and after dropout, and weights times what flows into them, of one tile; 0 where nothing is seen."""
    sums = tl.load(total + head * T + rows, mask=rows < T, other=0.0)
    s = whole(scores, cells, found, parts, size)
    a = tl.where(found, tl.exp(tl.where(found, s - sums[:, None], 0.0)), 0.0)
    share = a
    if DROPOUT:
        share = a * kept(drawn, head, rows, columns, S, dropout, scale)
    flow = share * tl.load(da + flows, mask=found, other=0.0).to(tl.float32)
    if GIVEN:
        places = (head * T + rows)[:, None] * S + columns[None, :]
        flow += a * tl.load(given + places, mask=found, other=0.0).to(tl.float32)
    return a, share, flow


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S", "base", "begin", "count", "parts"])
@no_type_check
def slope(
    scores, slopes, da, total, given, dropped, keep, bits, kinds, offsets, seed, base, begin, count, tall, wide, parts, size,
    heads, T, S, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, dropout, scale,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, DROPOUT: tl.constexpr, GIVEN: tl.constexpr,
):  # fmt: skip
    """Turn the scores of ROWS queries into ds = a (da - Σ a da), which may take their place, and give their weights after
    dropout, which may take the place of da.

    `given` is what flows into the weights themselves, where somebody asked for them. Σ a is 1, and 0 of the blind, but for
    rounding, which would add what all da have in common: so Σ a da is divided by it.
    """
    local = tl.program_id(1).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = tl.where(places < count, begin + places, T)
    scores += local * tall * wide
    slopes += local * tall * wide
    da += local * count * S
    dropped += local * count * S
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    drawn = 0
    if DROPOUT:
        drawn = tl.load(seed)
    mass = tl.zeros((ROWS, COLUMNS), tl.float32)
    mean = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, wide, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        found = seen(
            keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        cells, flows = places[:, None] * wide + columns[None, :], places.to(tl.int64)[:, None] * S + columns[None, :]
        a, share, flow = flowing(
            scores, da, total, given, drawn, head, rows, columns, cells, flows, T, S, found, parts, size, dropout, scale,
            DROPOUT, GIVEN,
        )  # fmt: skip
        mass += a
        mean += flow
    middle = tl.sum(mean, axis=1) / tl.maximum(tl.sum(mass, axis=1), 1e-30, propagate_nan=tl.PropagateNan.ALL)
    for start in range(0, wide, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        found = seen(
            keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        cells, flows = places[:, None] * wide + columns[None, :], places.to(tl.int64)[:, None] * S + columns[None, :]
        a, share, flow = flowing(
            scores, da, total, given, drawn, head, rows, columns, cells, flows, T, S, found, parts, size, dropout, scale,
            DROPOUT, GIVEN,
        )  # fmt: skip
        ds = tl.where(found, flow - a * middle[:, None], 0.0)
        tl.store(slopes + cells, ds.to(slopes.dtype.element_ty), mask=(columns < wide)[None, :])
        inside = (places < count)[:, None] & (columns < S)[None, :]
        tl.store(dropped + flows, share.to(dropped.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def number(places, present):
    """What is there, or 0: for what nobody may see ds is 0, and NaN would survive that; where it is seen, ds is NaN too."""
    data = tl.load(places, mask=present, other=0.0).to(tl.float32)
    return tl.where(data == data, data, 0.0)


@triton.jit
@no_type_check
def rounding(power, right):
    """δ of an exponential (1 + δ) that is rounded to the precision in which those of columns are held."""
    return power.to(right.dtype.element_ty).to(tl.float32) / power - 1.0


@triton.jit(do_not_specialize=["base", "column_base", "R", "C", "row_begin", "column_begin", "row_count", "column_count"])
@no_type_check
def gather(
    rows_of, columns_of, right, column_reach, v, slopes, found, falls,
    base, column_base, heads, row_heads, column_heads, v_heads, R, C, D,
    row_begin, column_begin, row_count, column_count, row_pad, column_pad, high, reach, part_stride, head_stride,
    row_stride, column_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, UNITS: tl.constexpr, PAIRS: tl.constexpr, PARTS: tl.constexpr,
    ASSEMBLY: tl.constexpr, HIDDEN: tl.constexpr, FALLS: tl.constexpr, LOST: tl.constexpr,
):  # fmt: skip
    """4 v Σ ds r (1 - r) over `reach` columns, for a tile of rows and hidden units: of queries for dq, of keys for dk.

    FALLS asks for Σ ds tanh over all rows of the tile too, for dv. Of columns it has rounded exponentials, e^{2x} (1 + δ),
    which add 2 δ ds r (1 - r) to a term; where x is small a tanh is no more than that. With LOST, where the same are rows,
    it is taken back. HIDDEN says that whole tiles may be 0, which are passed over.
    """
    local, part = (tl.program_id(2) // PARTS).to(tl.int64), tl.program_id(2) % PARTS
    head = base + local
    b, h = head // heads, head % heads
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    units = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    row_source = b * row_heads + h * row_heads // heads
    column_source = b * column_heads + h * column_heads // heads
    beside = column_source - column_base
    slopes += local * row_pad * column_pad + places * row_stride
    panel = tl.program_id(1) * UNITS
    right += beside * column_pad * high + panel * column_pad
    column_reach += beside * ((column_pad + 31) // 32)
    rows = rows_of + (row_source * R + row_begin) * D + places.to(tl.int64)[:, None] * D + units[None, :]
    inside = (places < row_count)[:, None] & (units < D)[None, :]
    raw = number(rows, inside)
    far = tl.max(tl.max(tl.abs(raw), axis=1), axis=0)
    power = exponential(tl.where(tl.abs(raw) > 40.0, 0.0, raw))
    fall = tl.zeros((ROWS, UNITS), tl.float32)
    steep = tl.zeros((ROWS, UNITS), tl.float32)
    level = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(part * reach, tl.minimum(part * reach + reach, column_pad), COLUMNS):
        block = start + tl.arange(0, COLUMNS)
        wild = far + farthest(column_reach, start, COLUMNS) > REACH
        met = True
        if FALLS or HIDDEN:
            tile = tl.load(slopes[:, None] + block[None, :] * column_stride).to(tl.float32)
            if FALLS:
                level += tile
            if HIDDEN:
                met = some(tile != 0.0)
        if met:
            if wild:
                columns = columns_of + (column_source * C + column_begin) * D
                q = number(rows, inside)  # again: a register for each would be held all the way
                for c in range(start, tl.minimum(start + COLUMNS, column_count)):
                    ds = tl.load(slopes + c * column_stride).to(tl.float32)[:, None]
                    k = number(columns + c * D + units, units < D)
                    if FALLS:  # as if it were rounded here too: LOST takes it back for all columns
                        k += 0.5 * rounding(exponential(tl.where(tl.abs(k) > 40.0, 0.0, k)), right)
                    r = plain(q + k[None, :], ASSEMBLY)
                    fall += ds * r
                    steep += ds * (r - r * r)
            else:
                powers, flows = right + start * UNITS + tl.arange(0, UNITS), slopes + start * column_stride
                for _ in range(0, COLUMNS, 2 * PAIRS):
                    for pair in tl.static_range(PAIRS):
                        first, second = 2 * pair, 2 * pair + 1
                        x = tl.fma(power, tl.load(powers + first * UNITS).to(tl.float32)[None, :], 1.0)
                        y = tl.fma(power, tl.load(powers + second * UNITS).to(tl.float32)[None, :], 1.0)
                        ds1 = tl.load(flows + first * column_stride).to(tl.float32)[:, None]
                        ds2 = tl.load(flows + second * column_stride).to(tl.float32)[:, None]
                        shared = reciprocal(x * y, ASSEMBLY)
                        r1, r2 = shared * y, shared * x
                        if FALLS:
                            fall = tl.fma(ds2, r2, tl.fma(ds1, r1, fall))
                        steep = tl.fma(ds2, r2 - r2 * r2, tl.fma(ds1, r1 - r1 * r1, steep))
                    powers += 2 * PAIRS * UNITS
                    flows += 2 * PAIRS * column_stride
    w = tl.load(v + h * v_heads // heads * D + units, mask=units < D, other=0.0).to(tl.float32)
    cells = found + part * part_stride + local * head_stride + places.to(tl.int64)[:, None] * D + units[None, :]
    tl.store(cells, (4.0 * w[None, :] * steep).to(found.dtype.element_ty), mask=inside)
    part_of_v = (part * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * (tl.num_programs(2) // PARTS) + local
    if FALLS:
        whole_level = tl.sum(tl.sum(level, axis=1), axis=0)
        tl.store(falls + part_of_v * D + units, whole_level - 2.0 * tl.sum(fall, axis=0), mask=units < D)
    if LOST:
        tl.store(falls + part_of_v * D + units, -2.0 * tl.sum(rounding(power, right) * steep, axis=0), mask=units < D)
