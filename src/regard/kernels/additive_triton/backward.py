"""The way back of additive attention, from log Σ e^s: what flows into the scores, of which `both` finds what leaves them.

    ds = a (da - Σ a da)

Scores are computed anew unless they were kept, a chunk at a time, so that ds exists for that chunk alone.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.additive_triton.forward import whole
from regard.kernels.additive_triton.visible import kept, seen


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
