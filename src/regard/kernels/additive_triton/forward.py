"""Additive attention in one pass: scores, softmax and the sum of values for a tile of queries, key tile by key tile.

The softmax is online: m is the largest score so far, l = Σ e^{s - m}, and both the sum and the context so far are scaled
when m grows. What is kept for the way back is log Σ e^s, one number for each query; `weigh` gets the weights from it, and
the scores themselves where the normaliser is another.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.additive_triton.rational import REACH, compare
from regard.kernels.additive_triton.visible import kept, seen, some


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S"])
@no_type_check
def attend(
    query, key, value, v, query_reach, key_reach, keep, mask, offsets, seed, context, total,
    heads, key_heads, value_heads, v_heads, T, S, D, V, first, behind, ahead, mask_b, mask_h, mask_t, mask_s, dropout, scale,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, VALUES: tl.constexpr, PAIRS: tl.constexpr, EVEN: tl.constexpr,
    ASSEMBLY: tl.constexpr, PRECISION: tl.constexpr, KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    """Context and log Σ e^s of ROWS queries of one head, for VALUES of the value's dimensions."""
    head = tl.program_id(1).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.program_id(2) * VALUES + tl.arange(0, VALUES)
    source = b * key_heads + h * key_heads // heads
    query, query_reach = query + head * D * T, query_reach + head * T
    key, key_reach = key + source * D * S, key_reach + source * S
    value += (b * value_heads + h * value_heads // heads) * S * V
    v += h * v_heads // heads * D
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    if DROPOUT:
        drawn = tl.load(seed)
    far = tl.max(tl.load(query_reach + rows, mask=rows < T, other=0.0), axis=0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    read = tl.zeros((ROWS, VALUES), tl.float32)
    begin = tl.maximum(tl.program_id(0) * ROWS + first - behind, 0) // COLUMNS * COLUMNS
    end = tl.minimum(tl.minimum(tl.program_id(0) * ROWS + ROWS, T) + first + ahead, S)
    for start in range(begin, end, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        found = seen(keep, mask, b, h, rows, columns, T, S, first, behind, ahead, mask_b, mask_h, mask_t, mask_s, KEEP, MASK)
        if some(found):
            reach = tl.max(tl.load(key_reach + columns, mask=columns < S, other=0.0), axis=0)
            wild = tl.maximum(reach, far) > REACH
            s = compare(query, key, v, wild, rows, columns, T, S, D, ROWS, COLUMNS, PAIRS, EVEN, ASSEMBLY)
            s = tl.where(found, s, float("-inf"))
            higher = tl.maximum(top, tl.max(s, axis=1))
            steady = tl.where(higher == float("-inf"), 0.0, higher)  # of a query that saw nothing yet
            p = tl.exp(s - steady[:, None])
            shrink = tl.exp(top - steady)
            mass = mass * shrink + tl.sum(p, axis=1)
            top = higher
            if DROPOUT:
                p = p * kept(drawn, head, rows, columns, S, dropout, scale)
            read_by_some = tl.max(found.to(tl.int32), axis=0) > 0  # what nobody may see may hold anything, NaN too
            inside = read_by_some[:, None] & (dims < V)[None, :]
            values = tl.load(value + columns.to(tl.int64)[:, None] * V + dims[None, :], mask=inside, other=0.0)
            read = read * shrink[:, None] + tl.dot(p.to(values.dtype), values, input_precision=PRECISION)
    blind = mass == 0.0
    mass = tl.where(blind, 1.0, mass)
    read = read / mass[:, None]
    places = (head * T + rows)[:, None] * V + dims[None, :]
    tl.store(context + places, read.to(context.dtype.element_ty), mask=(rows < T)[:, None] & (dims < V)[None, :])
    if tl.program_id(2) == 0:
        tl.store(total + head * T + rows, tl.where(blind, float("-inf"), top + tl.log(mass)), mask=rows < T)


@triton.jit(do_not_specialize=["first", "behind", "ahead", "T", "S"])
@no_type_check
def weigh(
    query, key, v, query_reach, key_reach, keep, mask, offsets, total, weights,
    heads, key_heads, v_heads, T, S, D, first, behind, ahead, mask_b, mask_h, mask_t, mask_s,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PAIRS: tl.constexpr, EVEN: tl.constexpr, ASSEMBLY: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, SCORES: tl.constexpr,
):  # fmt: skip
    """The weights e^{s - log Σ e^s} of one tile, 0 where nothing may be seen; or, with SCORES, -2 Σ v r as it is."""
    head = tl.program_id(2).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    source = b * key_heads + h * key_heads // heads
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    found = seen(keep, mask, b, h, rows, columns, T, S, first, behind, ahead, mask_b, mask_h, mask_t, mask_s, KEEP, MASK)
    share = tl.zeros((ROWS, COLUMNS), tl.float32)
    if some(found):
        far = tl.max(tl.load(query_reach + head * T + rows, mask=rows < T, other=0.0), axis=0)
        reach = tl.max(tl.load(key_reach + source * S + columns, mask=columns < S, other=0.0), axis=0)
        share = compare(
            query + head * D * T, key + source * D * S, v + h * v_heads // heads * D, tl.maximum(reach, far) > REACH,
            rows, columns, T, S, D, ROWS, COLUMNS, PAIRS, EVEN, ASSEMBLY,
        )  # fmt: skip
        if not SCORES:
            sums = tl.load(total + head * T + rows, mask=rows < T, other=0.0)
            share = tl.where(found, tl.exp(tl.where(found, share - sums[:, None], 0.0)), 0.0)
    places = (head * T + rows)[:, None] * S + columns[None, :]
    tl.store(weights + places, share.to(weights.dtype.element_ty), mask=(rows < T)[:, None] & (columns < S)[None, :])
