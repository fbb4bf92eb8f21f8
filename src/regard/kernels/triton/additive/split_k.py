"""Split-K additive attention of one query, as in a decoder step: the last program to end combines the parts of all.

The keys are read once in their own layout. It is memory-bound, so that an exponential and a reciprocal for each element
are free: r is computed from q + k, without a range check. The scores are written, one number for each key, and become the
weights; with dropout there are two sets, before and after it. The backward, `trace_kernel`, is one pass over the keys too.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.additive.mask import load_mask, sample_dropout
from regard.kernels.triton.additive.score_rational import compute_rational_tanh


@triton.jit(do_not_specialize=["first", "behind", "ahead", "S", "reach", "splits"])
@no_type_check
def split_kernel(
    query, key, value, v, keep, bits, kinds, offsets, seed, scores, parts, tops, masses, context, weights, dropped, finished,
    heads, key_heads, value_heads, v_heads, S, D, V, reach, splits, first, behind, ahead,
    bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, dropout, scale,
    COLUMNS: tl.constexpr, UNITS: tl.constexpr, VALUES: tl.constexpr, SPLITS: tl.constexpr,
    STAGES: tl.constexpr, ASSEMBLY: tl.constexpr,
    KEEP: tl.constexpr, MASK: tl.constexpr, OFFSETS: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Partial attention over `reach` keys: scores, their maximum m, Σ e^{s - m}, and Σ e^{s - m} value.

    `finished` counts the finished programs of each head, from 0 on: the last one combines all parts. The grid has one axis:
    the others are limited to 65,535, and there may be more heads.
    """
    part = tl.program_id(0).to(tl.int64)
    head = part // splits
    b, h = head // heads, head % heads
    key += (b * key_heads + h * key_heads // heads) * S * D
    value += (b * value_heads + h * value_heads // heads) * S * V
    v += h * v_heads // heads * D
    query += head * D
    units, dims = tl.arange(0, UNITS), tl.arange(0, VALUES)
    q = tl.load(query + units, mask=units < D, other=0.0).to(tl.float32)
    w = tl.load(v + units, mask=units < D, other=0.0).to(tl.float32)
    row = tl.zeros((1,), tl.int32)
    if OFFSETS:
        first = tl.load(offsets + b).to(tl.int32)
    if DROPOUT:
        seed_value = tl.load(seed)
    row_max = float("-inf")
    mass = 0.0
    acc = tl.zeros((VALUES,), tl.float32)
    begin = tl.program_id(0) % splits * reach
    for start in tl.range(begin, tl.minimum(begin + reach, S), COLUMNS, num_stages=STAGES):
        columns = start + tl.arange(0, COLUMNS)
        visible = load_mask(
            keep, bits, kinds, b, h, row, columns, 1, S, first, behind, ahead,
            bit_b, bit_h, bit_t, kind_b, kind_h, kind_t, KEEP, MASK,
        )  # fmt: skip
        key_mask = tl.max(visible.to(tl.int32), axis=0) > 0
        inside = key_mask[:, None] & (units < D)[None, :]
        k = tl.load(key + columns.to(tl.int64)[:, None] * D + units[None, :], mask=inside, other=0.0).to(tl.float32)
        partial = tl.sum(w[None, :] * compute_rational_tanh(q[None, :] + k, ASSEMBLY), axis=1)
        s = tl.where(key_mask, -2.0 * partial, float("-inf"))
        tl.store(scores + head * S + columns, s, mask=columns < S)
        new_max = tl.maximum(row_max, tl.max(s, axis=0))
        base = tl.where(new_max == float("-inf"), 0.0, new_max)
        p = tl.exp(s - base)
        rescale = tl.exp(row_max - base)
        mass = mass * rescale + tl.sum(p, axis=0)
        row_max = new_max
        if DROPOUT:
            p = p * tl.sum(sample_dropout(seed_value, head, row, columns, S, dropout, scale), axis=0)
        inside = key_mask[:, None] & (dims < V)[None, :]
        values = tl.load(value + columns.to(tl.int64)[:, None] * V + dims[None, :], mask=inside, other=0.0)
        acc = acc * rescale + tl.sum(p[:, None] * values.to(tl.float32), axis=0)
    tl.store(parts + part * V + dims, acc, mask=dims < V)
    tl.store(tops + part, row_max)
    tl.store(masses + part, mass)
    tl.debug_barrier()  # all stores precede the count
    if tl.atomic_add(finished + head, 1, sem="acq_rel", scope="gpu") == splits - 1:
        join_parts(
            scores, parts, tops, masses, seed, context, weights, dropped, head, S, V, splits, dropout, scale,
            128, SPLITS, COLUMNS, VALUES, DROPOUT,
        )  # fmt: skip


@triton.jit(do_not_specialize=["S", "splits"])
@no_type_check
def join_kernel(
    scores, parts, tops, masses, seed, context, weights, dropped, S, V, splits, dropout, scale,
    COLUMNS: tl.constexpr, SPLITS: tl.constexpr, VALUES: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Combine the parts in a launch of its own, without the counter: a program for each head."""
    join_parts(
        scores, parts, tops, masses, seed, context, weights, dropped, tl.program_id(0).to(tl.int64), S, V, splits, dropout,
        scale, COLUMNS, SPLITS, SPLITS, VALUES, DROPOUT,
    )  # fmt: skip


@triton.jit
@no_type_check
def join_parts(
    scores, parts, tops, masses, seed, context, weights, dropped, head, S, V, splits, dropout, scale,
    COLUMNS: tl.constexpr, SPLITS: tl.constexpr, SOME: tl.constexpr, VALUES: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Combine all parts into the context, SOME at a time, and turn the scores into weights if requested."""
    split_index, dims = tl.arange(0, SPLITS), tl.arange(0, VALUES)
    peaks = tl.load(tops + head * splits + split_index, mask=split_index < splits, other=float("-inf"))
    masses = tl.load(masses + head * splits + split_index, mask=split_index < splits, other=0.0)
    top = tl.max(peaks, axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)
    mass = tl.sum(masses * tl.exp(peaks - base), axis=0)
    mass = tl.where(mass == 0.0, 1.0, mass)
    acc = tl.zeros((VALUES,), tl.float32)
    for start in range(0, splits, SOME):
        split = start + tl.arange(0, SOME)
        rescale = tl.exp(tl.load(tops + head * splits + split, mask=split < splits, other=float("-inf")) - base)
        inside = (split < splits)[:, None] & (dims < V)[None, :]
        part = tl.load(parts + (head * splits + split)[:, None] * V + dims[None, :], mask=inside, other=0.0)
        acc += tl.sum(part * rescale[:, None], axis=0)
    tl.store(context + head * V + dims, (acc / mass).to(context.dtype.element_ty), mask=dims < V)
    if weights is not None:
        row = tl.zeros((1,), tl.int32)
        for start in range(0, S, COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            s = tl.load(scores + head * S + columns, mask=columns < S, other=float("-inf"))
            p = tl.exp(s - base) / mass
            tl.store(weights + head * S + columns, p, mask=columns < S)
            if DROPOUT:
                p = p * tl.sum(sample_dropout(tl.load(seed), head, row, columns, S, dropout, scale), axis=0)
                tl.store(dropped + head * S + columns, p, mask=columns < S)


@triton.jit(do_not_specialize=["S", "blocks"])
@no_type_check
def trace_kernel(
    query, key, v, dscores, dropped, d_context, d_key, d_value, dq_parts, dv_parts,
    heads, key_heads, v_heads, S, D, V, blocks,
    COLUMNS: tl.constexpr, UNITS: tl.constexpr, ASSEMBLY: tl.constexpr,
):  # fmt: skip
    """Backward of one query: dk = 4 v ds r (1 - r) of a tile of keys, with its sum for dq and Σ ds (1 - 2 r) for dv.

    The gradient of its values is dO times their `dropped` weights. At masked positions ds is 0, and NaN counts as 0,
    since 0 times NaN is NaN; at visible ones ds is NaN too.
    """
    head, block = (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks
    b, h = head // heads, head % heads
    columns = block * COLUMNS + tl.arange(0, COLUMNS)
    units = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    wide = units < D
    inside = (columns < S)[:, None] & wide[None, :]
    key += (b * key_heads + h * key_heads // heads) * S * D
    cells = columns.to(tl.int64)[:, None] * D + units[None, :]
    x = tl.load(key + cells, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(query + head * D + units, mask=wide, other=0.0).to(tl.float32)[None, :]
    r = compute_rational_tanh(tl.where(x == x, x, 0.0), ASSEMBLY)
    ds = tl.load(dscores + head * S + columns, mask=columns < S, other=0.0)[:, None]
    w = tl.load(v + h * v_heads // heads * D + units, mask=wide, other=0.0).to(tl.float32)
    dk = 4.0 * w[None, :] * ds * (r - r * r)
    tl.store(d_key + head * S * D + cells, dk.to(d_key.dtype.element_ty), mask=inside)
    part = tl.program_id(0).to(tl.int64) * D + units
    tl.store(dq_parts + part, tl.sum(dk, axis=0), mask=wide)
    tl.store(dv_parts + part, tl.sum(ds * (1.0 - 2.0 * r), axis=0), mask=wide)
    weight = tl.load(dropped + head * S + columns, mask=columns < S, other=0.0)[:, None]
    do = tl.load(d_context + head * V + units, mask=units < V, other=0.0).to(tl.float32)[None, :]
    value_cells = d_value + head * S * V + columns.to(tl.int64)[:, None] * V + units[None, :]
    tl.store(value_cells, (weight * do).to(d_value.dtype.element_ty), mask=(columns < S)[:, None] & (units < V)[None, :])
