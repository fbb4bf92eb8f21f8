"""Launchers of the flash kernels: outputs, tiles and grids."""

from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.triton.flash import windows
from regard.kernels.triton.flash.arguments import (
    Asked,
    Chosen,
    Found,
    Plan,
    fit,
    flags,
    rows,
    scoped,
    sized,
    start,
    strides,
    told,
)
from regard.kernels.triton.flash.configs import WIDEST, block

STATISTICS = 4
"""Statistics per query in one pass: entropy, largest weight, mean and standard deviation of the position."""

EACH = 64
"""Queries and keys of a tile of the mask kernels."""


def forward(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, asked: Asked, room: Found | None = None) -> Found:
    """Launch the forward: one pass over the keys, one more for each further top-k key, and one for the column sums."""
    from regard.kernels.triton.flash import forward as programs

    batch, heads, queries, _ = query.shape
    found = empty(query, keys, values, asked) if room is None else room
    sides = rows(query), rows(keys), rows(values)
    written = found.lse, found.measured, found.argmax, found.best, found.best_keys
    first = *sides, rows(found.context), *written, *scoped(plan), plan.seed, *told(query, keys, values, plan)
    measured = {"PEAK": asked.peak, "ENTROPIC": asked.entropy, "MOMENTS": asked.moments, "TOP": asked.top}
    shape = {**measured, "LATE": plan.scale > 0, "V": block(values.shape[3]), **flags(plan)}
    tiles, registers = _held(query, values, plan, asked)

    def by(tiles: list[int]) -> None:
        grid = _tiles(queries, tiles[0]), batch * heads
        kind = {**registers, "EVEN": windows.even(keys, plan, tiles)}
        start(programs.forward, grid, first, **shape, **kind, **sized(query, tiles))

    fit("forward", by, tiles, query, values)
    for taken in range(1, asked.top):
        _following(query, keys, plan, taken, found)
    if asked.received:
        _received(query, keys, plan, found)
    if asked.uniform:
        _even(query, keys, plan, found.uniform)
    return found


def _held(query: Tensor, values: Tensor, plan: Plan, asked: Asked) -> tuple[list[int], dict[str, int]]:
    """Tiles and register limit of a pass with predicted windows, or with statistics (statistics.py).

    With 128 registers per thread the occupancy for narrow heads is that without statistics.
    """
    tall, wide, warps, stages = plan.tiles
    if plan.centres is not None:
        return windows.held("forward", plan.tiles, query, values)
    if not (asked.peak or asked.entropy or asked.moments or asked.top):
        return plan.tiles, {}
    tiles = [tall, min(wide, WIDEST), warps, stages]
    narrow = query.element_size() <= 2 and max(block(query.shape[3]), block(values.shape[3])) <= 64
    known = torch.version.hip is None  # AMD's compiler has no such option
    return tiles, {"maxnreg": 128} if narrow and known else {}


def empty(query: Tensor, keys: Tensor, values: Tensor, asked: Asked) -> Found:
    """Allocate the outputs."""
    batch, heads, queries, _ = query.shape
    measured = asked.peak or asked.entropy or asked.moments
    by_key = batch, heads, keys.shape[2]
    nothing = (0,)
    return Found(
        *_read(query, values),
        measured=query.new_empty(STATISTICS if measured else 0, batch, heads, queries, dtype=torch.float32),
        argmax=query.new_empty(batch, heads, queries if asked.peak else 0, dtype=torch.int64),
        best=query.new_empty(batch, heads, queries, asked.top, dtype=torch.float32),
        best_keys=query.new_empty(batch, heads, queries, asked.top, dtype=torch.int64),
        received=query.new_empty(by_key if asked.received else nothing, dtype=torch.float32),
        uniform=query.new_empty(by_key if asked.uniform else nothing, dtype=torch.float32),
    )


def least(query: Tensor, keys: Tensor, values: Tensor, asked: Asked) -> Found:
    """Allocate the outputs with less host time: without statistics the empty tensors are shared by all calls."""
    return empty(query, keys, values, asked) if any(asked) else Found(*_read(query, values), *unasked(query))


def unasked(like: Tensor) -> tuple[Tensor, ...]:
    """Fields of `Found` from the third on, where no statistics are requested."""
    number, place = _nothing(like.device, torch.float32), _nothing(like.device, torch.int64)
    return number, place, number, place, number, number


def _read(query: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    batch, heads, queries, _ = query.shape
    context = query.new_empty(batch, heads, queries, values.shape[3], dtype=values.dtype)
    return context, query.new_empty(batch, heads, queries, dtype=torch.float32)


@cache
def _nothing(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.empty(0, device=device, dtype=dtype)


def _following(query: Tensor, keys: Tensor, plan: Plan, taken: int, found: Found) -> None:
    """Launch the pass for the next largest weight."""
    from regard.kernels.triton.flash import topk as programs

    batch, heads, queries, _ = query.shape
    sides = rows(query), rows(keys), found.lse, found.best, found.best_keys
    first = *sides, *_seen(query, keys, plan), taken, found.best.shape[3]
    shape = {"SLOTS": max(2, 1 << (taken - 1).bit_length()), "LATE": plan.scale > 0}
    shape |= {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0}

    def by(tiles: list[int]) -> None:
        start(programs.following, (_tiles(queries, tiles[0]), batch * heads), first, **shape, **sized(query, tiles))

    tall, wide, *rest = plan.tiles
    fit("following", by, [tall, min(wide, WIDEST), *rest], query, query)


def _received(query: Tensor, keys: Tensor, plan: Plan, found: Found) -> None:
    from regard.kernels.triton.flash import column_sums as programs

    batch, heads, _, _ = query.shape
    first = rows(query), rows(keys), found.lse, found.received, *_seen(query, keys, plan)
    shape = {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0}

    def by(tiles: list[int]) -> None:
        start(programs.received, (_tiles(keys.shape[2], tiles[1]), batch * heads), first, **shape, **sized(query, tiles))

    fit("received", by, plan.tiles, query, query)


def _seen(query: Tensor, keys: Tensor, plan: Plan) -> tuple[Any, ...]:
    """Arguments of the kernels that recompute scores."""
    (_, heads, queries, size), length = query.shape, keys.shape[2]
    bias, _, *scope = scoped(plan)
    return bias, *scope, plan.offset, plan.window, float(plan.scale), heads, heads // keys.shape[1], queries, length, size


def _even(query: Tensor, keys: Tensor, plan: Plan, uniform: Tensor) -> None:
    """Column sums of uniform weights, computed once for all heads unless the mask differs between heads."""
    from regard.kernels.triton.flash import column_sums as programs

    (batch, _, queries, _), length = query.shape, keys.shape[2]
    heads = 1 if plan.mask is None else plan.mask.shape[1]
    counts = uniform.new_empty(batch, heads, queries)
    even = uniform if heads == uniform.shape[1] else uniform.new_empty(batch, heads, length)
    scope = *scoped(plan)[2:], plan.offset, plan.window, heads, queries, length
    shape = {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0, "M": EACH, "N": EACH}
    with torch.cuda.device(query.device) if query.is_cuda else nullcontext():  # the device of Triton's launch
        start(programs.counted, (_tiles(queries, EACH), batch * heads), (counts, *scope), **shape)
        start(programs.evened, (_tiles(length, EACH), batch * heads), (counts, even, *scope), **shape)
    if even is not uniform:
        uniform.copy_(even.expand_as(uniform))


class Gradients(NamedTuple):
    """Outputs of the backward; empty tensors for a bias or centres without a gradient."""

    query: Tensor
    keys: Tensor
    values: Tensor
    bias: Tensor
    centres: Tensor


def backward(gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, context: Tensor, lse: Tensor,
             plan: Plan, wants_bias: bool, wants_centres: bool) -> Gradients:  # fmt: skip
    """Launch the backward."""
    from regard.kernels.triton.flash import backward as programs

    batch, heads, queries, _ = query.shape
    span = queries + keys.shape[2] - 1
    made = Gradients(
        torch.empty_like(query, memory_format=torch.contiguous_format),
        torch.empty_like(keys, memory_format=torch.contiguous_format),
        torch.empty_like(values, memory_format=torch.contiguous_format),
        lse.new_empty(batch, heads, span) if wants_bias else _nothing(lse.device, lse.dtype),
        lse.new_empty(batch, heads, queries) if wants_centres else _nothing(lse.device, lse.dtype),
    )
    tiles = [min(each, 64) for each in plan.tiles[:2]] + plan.tiles[2:]  # the backward holds twice as much as the forward
    if plan.centres is not None:
        if wants_bias:
            raise ValueError("a bias has no gradient beside windows that queries place")
        pulled = made.centres if wants_centres else None
        windows.backward(gradient, query, keys, values, context, lse, plan._replace(tiles=tiles), (*made[:3], pulled))
        return made
    sides = rows(query), rows(keys), rows(values), rows(gradient), lse, torch.empty_like(lse)
    numbers = told(query, keys, values, plan)
    shape = {"V": block(values.shape[3]), **flags(plan)}

    def queries_by(tiles: list[int]) -> None:
        grid = _tiles(queries, tiles[0]), batch * heads
        first = *sides, rows(context), rows(made.query), None, None, *scoped(plan), plan.seed, *numbers
        start(programs.of_queries, grid, first, **shape, EVEN=False, **sized(query, tiles))

    def memory_by(tiles: list[int]) -> None:
        grid = _tiles(keys.shape[2], tiles[1]), batch * keys.shape[1]
        bias, _, *scope = scoped(plan)
        offset, window, _, *others = numbers
        first = *sides, rows(made.keys), rows(made.values), bias, *scope, plan.seed, offset, window, *others
        start(programs.of_memory, grid, first, **shape, **sized(query, tiles))

    fit("of_queries", queries_by, tiles, query, values)
    fit("of_memory", memory_by, tiles, query, values)
    if wants_bias:
        _bias(sides, values, plan, numbers, made.bias)
    return made


def _bias(sides: tuple[Any, ...], values: Tensor, plan: Plan, numbers: tuple[Any, ...], found: Tensor) -> None:
    """Launch the kernel of dBias."""
    from regard.kernels.triton.flash import backward as programs

    (batch, heads, span), query = found.shape, sides[0][0]
    bias, _, *scope = scoped(plan)
    offset, window, _, *others = numbers

    def start(tiles: list[int]) -> None:
        each = min(*tiles[:2], 32)  # it has twice as many keys
        shape = {**sized(query, tiles), "M": each, "V": block(values.shape[3])}
        kind = {name: shape[name] for name in shape if name != "N"}
        programs.of_bias[(_tiles(span, each), batch * heads)](
            *sides, found, bias, *scope, plan.seed, offset, window, *others,
            CAUSAL=plan.causal, WINDOWED=plan.window >= 0, **kind,
        )  # fmt: skip

    fit("of_bias", start, plan.tiles, query, values)


def weigh(query: Tensor, keys: Tensor, v: Tensor | None, plan: Plan, chosen: Chosen) -> Tensor:
    """Launch the kernel of selected float32 weights; with `v` the score is additive."""
    from regard.kernels.triton.flash.weights import weigh as program

    (batch, heads, queries, size), length, count = query.shape, keys.shape[2], len(chosen.queries)
    taken = heads if chosen.heads is None else len(chosen.heads)
    among = range(length) if chosen.keys is None else chosen.keys
    found = query.new_empty(batch, taken, count, len(among), dtype=torch.float32)
    if found.numel() == 0:
        return found
    bias, _, *scope = scoped(plan)

    def start(tiles: list[int]) -> None:
        program[(_tiles(count, tiles[0]), batch * taken)](
            rows(query), rows(keys), None if v is None else (v, *strides(v, 1)), chosen.lse, found,
            chosen.queries, chosen.heads, bias, *scope,
            plan.offset, plan.window, plan.scale, heads, taken, heads // keys.shape[1], queries, length, count, size,
            among.start, among.stop,
            ADDITIVE=v is not None, CAUSAL=plan.causal, WINDOWED=plan.window >= 0, **sized(query, tiles),
        )  # fmt: skip

    fit("weigh", start, plan.tiles, query, query)
    return found


def _tiles(length: int, tile: int) -> int:
    return -(-length // tile)
