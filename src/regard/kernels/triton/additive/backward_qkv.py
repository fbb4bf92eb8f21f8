"""Backward of the additive score: dQ, dK and dv in one pass over dScores.

    h = r - 1/2 = -tanh / 2,    dq = 4 v Σ_k ds (1/4 - h²),    dk = 4 v Σ_q ds (1/4 - h²),    dv = -2 Σ ds h

A program has a few hidden units and a tile of keys, whose exponentials and sums stay in registers, and loops over the
queries; two keys share a reciprocal. A thread has keys of one unit: its sum for dk is complete, and for dq it is reduced
over a few threads of its warp. No exponential is precomputed. With several tiles of keys each writes a partial sum of dq,
and with the queries split over several programs each writes one of dk, so that sums are deterministic. Two queries are
pipelined: while one is computed, ds of the next is loaded, and dq of the one before is reduced over threads.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.capability import allows_assembly
from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive.arguments import ScoreInputs, Tiles, count_keys_per_thread, heads, limit_registers, parts
from regard.kernels.triton.additive.chunks import Chunk
from regard.kernels.triton.additive.mask import any_visible
from regard.kernels.triton.additive.plan import Plan, count_units_per_program
from regard.kernels.triton.additive.reduce import PartialSums
from regard.kernels.triton.additive.score_rational import (
    MAX_REACH,
    MIN_REACH,
    MIN_REACH_HALF,
    compute_exact_tanh,
    exponential,
    reciprocal,
)


class GradientOutputs(NamedTuple):
    """Outputs of a chunk: a partial sum of dq for each tile of keys, of dk for each program that shares the queries of a
    head, and of dv for either."""

    query: PartialSums
    key: PartialSums
    v: PartialSums


def write_gradients(
    sides: ScoreInputs,
    dscores: Float[Tensor, "some_heads padded_queries padded_keys"],
    chunk: Chunk,
    outputs: GradientOutputs,
    plan: Plan,
    tiles: Tiles,
    hides: bool,
) -> None:
    """Write all gradients of a chunk; with `hides` tiles of dScores may be empty. bfloat16 is read in words of two."""
    (many, tall, wide), hidden, wanted = dscores.shape, sides.query.shape[3], count_units_per_program(plan.across, tiles)
    arguments = {
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": sides.v,
        "dscores": dscores.view(torch.int64) if dscores.dtype == torch.bfloat16 else dscores,
        "dq": outputs.query.first,
        "dk": outputs.key.first,
        "dv": outputs.v.first,
        "dq_more": outputs.query.first if outputs.query.more is None else outputs.query.more,
        "dk_more": outputs.key.first if outputs.key.more is None else outputs.key.more,
        "dv_more": outputs.v.first if outputs.v.more is None else outputs.v.more,
        "base": chunk.heads.start,
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "D": hidden,
        "begin": chunk.rows.start,
        "count": len(chunk.rows),
        "tall": tall,
        "wide": wide,
        "tiles": plan.tiles,
        "reach": plan.reach,
        "one": 1,
        "query_part": outputs.query.gradient.numel(),
        "query_head": outputs.query.first.stride(0),
        "key_part": outputs.key.gradient.numel(),
        "key_head": outputs.key.first.stride(0),
        "v_part": outputs.v.gradient.numel(),
        "ROWS": tiles.both_rows,
        "KEYS": count_keys_per_thread(tiles, sides.key.dtype) // VECTOR,
        "ACROSS": plan.across,
        "UNITS": wanted,
        "WHOLE": wide % (plan.across * count_keys_per_thread(tiles, sides.key.dtype)) == 0,
        "ASSEMBLY": allows_assembly(),
        "HIDDEN": hides,
        "SINGLE": sides.query.dtype == torch.float32,
    }
    grid = parts(hidden, wanted), plan.tiles * plan.shared, many
    launch_cached(backward_kernel, grid, arguments, num_warps=tiles.both_warps, **limit_registers(tiles.both_registers))


VECTOR = 4
"""Neighbouring keys of a thread: their dScores are one vector load, and each two share a reciprocal."""


@triton.jit(do_not_specialize=["base", "T", "S", "begin", "count", "tiles", "reach", "one"])
@no_type_check
def backward_kernel(
    query, key, v, dscores, dq, dk, dv, dq_more, dk_more, dv_more,
    base, heads, key_heads, v_heads, T, S, D, begin, count, tall, wide, tiles, reach, one,
    query_part, query_head, key_part, key_head, v_part,
    ROWS: tl.constexpr, KEYS: tl.constexpr, ACROSS: tl.constexpr, UNITS: tl.constexpr,
    WHOLE: tl.constexpr, ASSEMBLY: tl.constexpr, HIDDEN: tl.constexpr, SINGLE: tl.constexpr,
):  # fmt: skip
    """Kernel of UNITS hidden units: 4 v Σ ds (1/4 - h²) over the tile's keys and over `reach` queries, -2 Σ ds h over both.

    There are four tiles, of every fourth key, with axes (ACROSS, UNITS, KEYS), of which Triton distributes the first two
    over threads, so that a thread has KEYS keys of each tile. `one` is 1, hidden from the compiler: where it sees that the
    units of a key are contiguous it chooses another layout, and goes through shared memory at every query. At masked
    positions ds is 0, and NaN in q or k is 0.
    """
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    part, tile = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    first, panel = tile * (4 * KEYS * ACROSS), tl.program_id(0) * UNITS
    lanes, units = tl.arange(0, ACROSS), panel + tl.arange(0, UNITS)
    fours = tl.broadcast_to(tl.arange(0, KEYS)[None, None, :] * ACROSS + lanes[:, None, None], (ACROSS, UNITS, KEYS))
    columns = first + 4 * fours
    EVERY: tl.constexpr = 4 if dscores.dtype.element_ty == tl.int64 else 1
    pitch = wide // EVERY
    if EVERY == 1:
        quads = columns[:, :, :, None] + tl.arange(0, 4)[None, None, None, :]
    else:
        lone = (tile * (KEYS * ACROSS) + lanes * one).to(tl.int64)
        quads = lone[:, None, None] + (tl.arange(0, KEYS) * ACROSS)[None, None, :]
        quads = tl.broadcast_to(quads, (ACROSS, UNITS, KEYS))
    cells = columns * D + (units * one)[None, :, None]
    key += (b * key_heads + h * key_heads // heads) * S * D
    nothing = tl.zeros((ACROSS, UNITS, KEYS), tl.float32)
    reach_k, powers, dk_acc, dv_acc = nothing, (), (nothing, nothing, nothing, nothing), nothing
    for step in tl.static_range(4):
        k = load_keys(key, cells, columns, units, step, S, D)
        reach_k = tl.maximum(reach_k, tl.abs(k))
        powers = powers + (exponentiate(k),)  # noqa: RUF005 (Triton knows no unpacking)
    reach_k = tl.max(tl.max(tl.max(reach_k, axis=2), axis=1), axis=0)
    query += (head * T + begin) * D
    dscores += local * tall * pitch
    dq = find_partial_offset(dq, dq_more, tile, query_part) + local * query_head
    w = 4.0 * tl.load(v + h * v_heads // heads * D + units, mask=units < D, other=0.0).to(tl.float32)
    for begun in range(part * reach, tl.minimum(part * reach + reach, count), ROWS):
        rows = begun + tl.arange(0, ROWS)
        in_block = (rows < count)[:, None] & (units < D)[None, :]
        block = rows.to(tl.int64)[:, None] * D + units[None, :]
        reach_qk = reach_k + tl.max(tl.max(tl.abs(replace_nan(query + block, in_block)), axis=1), axis=0)
        least: tl.constexpr = MIN_REACH if SINGLE else MIN_REACH_HALF
        out_of_range = (reach_qk > MAX_REACH) | (reach_qk < least)
        nonzero, dk_before, dv_before = True, dk_acc, dv_acc
        if SINGLE:  # a sum of block sums loses less than one long sum
            dk_acc, dv_acc = (nothing, nothing, nothing, nothing), nothing
        if HIDDEN:
            tops = first // EVERY + tl.arange(0, 4 * KEYS * ACROSS // EVERY)
            words = tl.load(dscores + rows[:, None] * pitch + tops[None, :], mask=(tops < pitch)[None, :], other=0)
            nonzero = any_visible(words != 0)
        if nonzero:
            before, end = tl.cast(begun, tl.int64) * D, tl.minimum(begun + ROWS, count)
            q_pointer, ds_pointer = query + before + units, dscores + begun * pitch
            dq_pointer = dq + before + (units * one)[None, :] + tl.zeros((ACROSS, 1), tl.int32)
            if out_of_range:
                for _ in range(begun, end):
                    ds, q = load_dscores(ds_pointer, quads, pitch, WHOLE), replace_nan(q_pointer, units < D)[None, :, None]
                    h0 = compute_exact_tanh(q + load_keys(key, cells, columns, units, 0, S, D), ASSEMBLY)
                    h1 = compute_exact_tanh(q + load_keys(key, cells, columns, units, 1, S, D), ASSEMBLY)
                    h2 = compute_exact_tanh(q + load_keys(key, cells, columns, units, 2, S, D), ASSEMBLY)
                    h3 = compute_exact_tanh(q + load_keys(key, cells, columns, units, 3, S, D), ASSEMBLY)
                    dk_acc, dv_acc, dq_lanes = accumulate_gradients(ds, h0, h1, h2, h3, dk_acc, dv_acc, SINGLE)
                    store_dq(dq_pointer, w, dq_lanes, units < D, lanes, UNITS, ACROSS)
                    q_pointer += D
                    dq_pointer += D
                    ds_pointer += pitch
            else:
                inside, last = units < D, end - 1 - begun
                ds = load_dscores(ds_pointer, quads, pitch, WHOLE)
                q_now, q_next = tl.load(q_pointer, mask=inside), tl.load(q_pointer + tl.minimum(1, last) * D, mask=inside)
                dq_lanes = tl.zeros((ACROSS, UNITS), tl.float32)
                dq_pointer -= D
                for at in range(0, end - begun, 2):
                    second, third = tl.minimum(at + 2, last), tl.minimum(at + 3, last)
                    q_second, q_third = (
                        tl.load(q_pointer + second * D, mask=inside),
                        tl.load(q_pointer + third * D, mask=inside),
                    )
                    other = load_dscores(ds_pointer + (at + 1) * pitch, quads, pitch, WHOLE)
                    store_dq(dq_pointer, w, dq_lanes, inside & (at > 0), lanes, UNITS, ACROSS)
                    h0, h1, h2, h3 = compute_h(q_now, powers, SINGLE, ASSEMBLY)
                    dk_acc, dv_acc, dq_lanes = accumulate_gradients(ds, h0, h1, h2, h3, dk_acc, dv_acc, SINGLE)
                    dq_pointer += D
                    ds = load_dscores(ds_pointer + second * pitch, quads, pitch, WHOLE)
                    store_dq(dq_pointer, w, dq_lanes, inside, lanes, UNITS, ACROSS)
                    h0, h1, h2, h3 = compute_h(q_next, powers, SINGLE, ASSEMBLY)
                    dk_acc, dv_acc, dq_lanes = accumulate_gradients(other, h0, h1, h2, h3, dk_acc, dv_acc, SINGLE)
                    dq_pointer += D
                    q_now, q_next = q_second, q_third
                store_dq(dq_pointer, w, dq_lanes, inside & (last % 2 == 1), lanes, UNITS, ACROSS)
        else:
            tl.store(dq + block, tl.zeros((ROWS, UNITS), dq.dtype.element_ty), mask=in_block)
        if SINGLE:
            dk_acc = add_tuples(dk_acc, dk_before)
            dv_acc += dv_before
    dk = find_partial_offset(dk, dk_more, part, key_part) + local * key_head
    dv = find_partial_offset(dv, dv_more, tl.program_id(1), v_part) + local * D
    for step in tl.static_range(4):
        in_keys = (columns + step < S) & (units < D)[None, :, None]
        tl.store(dk + step * D + cells, (w[None, :, None] * dk_acc[step]).to(dk.dtype.element_ty), mask=in_keys)
    tl.store(dv + units, -2.0 * tl.sum(tl.sum(dv_acc, axis=2), axis=0), mask=units < D)


@triton.jit
@no_type_check
def find_partial_offset(first, more, number, size):
    """Offset of a partial sum by its number, with the same stride between heads in all of them."""
    return tl.where(number == 0, first, more + (number - 1).to(tl.int64) * size)


@triton.jit
@no_type_check
def replace_nan(places, present):
    """The data with NaN set to 0: at masked positions ds is 0, and 0 times NaN is NaN; at visible ones ds is NaN too."""
    data = tl.load(places, mask=present, other=0.0).to(tl.float32)
    return tl.where(data == data, data, 0.0)


@triton.jit
@no_type_check
def load_keys(key, cells, columns, units, tile: tl.constexpr, S, D):
    """Load one of the four tiles of keys within the sequence."""
    return replace_nan(key + tile * D + cells, (columns + tile < S) & (units < D)[None, :, None])


@triton.jit
@no_type_check
def exponentiate(x):
    """e^{2x}; where it would overflow it is not used."""
    return exponential(tl.where(tl.abs(x) > 40.0, 0.0, x))


@triton.jit
@no_type_check
def load_dscores(dscores, quads, pitch, WHOLE: tl.constexpr):
    """Load ds of one query and four neighbouring keys, equal for all units.

    They are four numbers, or two words of two each, packed by `backward.pack_pair`.
    """
    loaded = tl.load(dscores + quads) if WHOLE else tl.load(dscores + quads, mask=quads < pitch, other=0)
    ACROSS: tl.constexpr = loaded.shape[0]
    UNITS: tl.constexpr = loaded.shape[1]
    KEYS: tl.constexpr = loaded.shape[2]
    if loaded.dtype == tl.int64:
        first, second = loaded.to(tl.int32), (loaded >> 32).to(tl.int32)
        ds0, ds2 = (first << 16).to(tl.float32, bitcast=True), (second << 16).to(tl.float32, bitcast=True)
        ds1, ds3 = first.to(tl.float32, bitcast=True), second.to(tl.float32, bitcast=True)
    else:
        even, odd = tl.split(tl.reshape(loaded, (ACROSS, UNITS, KEYS, 2, 2)))
        ds0, ds2 = tl.split(even)
        ds1, ds3 = tl.split(odd)
    return ds0, ds1, ds2, ds3


@triton.jit
@no_type_check
def compute_h(q, powers, SINGLE: tl.constexpr, ASSEMBLY: tl.constexpr):
    """h of one query and all keys by exponentials, for numbers that are small enough."""
    q = q.to(tl.float32)
    q = tl.where(q == q, q, 0.0)
    q = exponential(q) if SINGLE else tl.exp2(q * 2.885390043258667)  # half precision has already lost more than this
    h0, h1 = compute_h_pair(q[None, :, None], powers[0], powers[1], ASSEMBLY)
    h2, h3 = compute_h_pair(q[None, :, None], powers[2], powers[3], ASSEMBLY)
    return h0, h1, h2, h3


@triton.jit
@no_type_check
def compute_h_pair(q, first, second, ASSEMBLY: tl.constexpr):
    """h of one query and two keys, by one reciprocal."""
    x, y = tl.fma(q, first, 1.0), tl.fma(q, second, 1.0)
    inverse = reciprocal(x * y, ASSEMBLY)
    return tl.fma(inverse, y, -0.5), tl.fma(inverse, x, -0.5)


@triton.jit
@no_type_check
def accumulate_gradients(ds, h0, h1, h2, h3, dk, dv, SINGLE: tl.constexpr):
    """Accumulate dk and dv with one query, and its partial dq of each thread."""
    if SINGLE:
        dv += tl.fma(ds[3], h3, tl.fma(ds[2], h2, tl.fma(ds[1], h1, ds[0] * h0)))
    else:
        dv = tl.fma(ds[3], h3, tl.fma(ds[2], h2, tl.fma(ds[1], h1, tl.fma(ds[0], h0, dv))))
    slope0, slope1, slope2, slope3 = 0.25 - h0 * h0, 0.25 - h1 * h1, 0.25 - h2 * h2, 0.25 - h3 * h3
    dq = tl.fma(ds[3], slope3, tl.fma(ds[2], slope2, tl.fma(ds[1], slope1, ds[0] * slope0)))
    dk0, dk1 = tl.fma(ds[0], slope0, dk[0]), tl.fma(ds[1], slope1, dk[1])
    dk2, dk3 = tl.fma(ds[2], slope2, dk[2]), tl.fma(ds[3], slope3, dk[3])
    return (dk0, dk1, dk2, dk3), dv, tl.sum(dq, axis=2)


@triton.jit
@no_type_check
def add_tuples(one, other):
    """Sum of two tuples, elementwise."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


@triton.jit
@no_type_check
def store_dq(target, w, partial, inside, lanes, UNITS: tl.constexpr, ACROSS: tl.constexpr):
    """Write the partial dq of one query; all threads of a unit have it, and one writes."""
    dq = w * tl.sum(partial, axis=0)
    written = (lanes == 0)[:, None] & inside[None, :]
    tl.store(target, tl.broadcast_to(dq[None, :], (ACROSS, UNITS)).to(target.dtype.element_ty), mask=written)
