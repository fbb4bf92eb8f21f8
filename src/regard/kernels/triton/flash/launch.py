"""Launchers of the flash kernels: outputs, tiles and grids."""

from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.triton.flash import windows
from regard.kernels.triton.flash.arguments import (
    ForwardOutput,
    Plan,
    Selection,
    StatisticsRequest,
    broadcast_strides,
    build_number_arguments,
    build_scope_flags,
    build_tensor_arguments,
    build_tile_arguments,
    launch_fitting,
    launch_kernel,
    pack_rows,
)
from regard.kernels.triton.flash.configs import WIDEST, round_up

STATISTICS = 4
"""Statistics per query in one pass: entropy, largest weight, mean and standard deviation of the position."""

MASK_TILE = 64
"""Queries and keys of a tile of the mask kernels."""


def forward(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    plan: Plan,
    requested: StatisticsRequest,
    allocated: ForwardOutput | None = None,
) -> ForwardOutput:
    """Launch the forward: one pass over the keys, one more for each further top-k key, and one for the column sums."""
    from regard.kernels.triton.flash import forward as programs

    batch, heads, queries, _ = query.shape
    output = allocate_output(query, keys, values, requested) if allocated is None else allocated
    sides = pack_rows(query), pack_rows(keys), pack_rows(values)
    statistics = output.lse, output.measured, output.argmax, output.best, output.best_keys
    first = (
        *sides,
        pack_rows(output.context),
        *statistics,
        *build_tensor_arguments(plan),
        plan.seed,
        *build_number_arguments(query, keys, values, plan),
    )
    measured = {"PEAK": requested.peak, "ENTROPIC": requested.entropy, "MOMENTS": requested.moments, "TOP": requested.top}
    shape = {**measured, "LATE": plan.scale > 0, "V": round_up(values.shape[3]), **build_scope_flags(plan)}
    tiles, registers = _select_config(query, values, plan, requested)

    def start(tiles: list[int]) -> None:
        grid = _count_tiles(queries, tiles[0]), batch * heads
        kind = {**registers, "EVEN": windows.is_even(keys, plan, tiles)}
        launch_kernel(programs.forward, grid, first, **shape, **kind, **build_tile_arguments(query, tiles))

    launch_fitting("forward", start, tiles, query, values)
    for number in range(1, requested.top):
        _launch_next_top(query, keys, plan, number, output)
    if requested.received:
        _launch_column_sums(query, keys, plan, output)
    if requested.uniform:
        _launch_uniform_sums(query, keys, plan, output.uniform)
    return output


def _select_config(
    query: Tensor, values: Tensor, plan: Plan, requested: StatisticsRequest
) -> tuple[list[int], dict[str, int]]:
    """Tiles and register limit of a pass with predicted windows, or with statistics (statistics.py).

    With 128 registers per thread the occupancy for narrow heads is that without statistics.
    """
    tall, wide, warps, stages = plan.tiles
    if plan.centres is not None:
        return windows.select_config("forward", plan.tiles, query, values)
    if not (requested.peak or requested.entropy or requested.moments or requested.top):
        return plan.tiles, {}
    tiles = [tall, min(wide, WIDEST), warps, stages]
    narrow = query.element_size() <= 2 and max(round_up(query.shape[3]), round_up(values.shape[3])) <= 64
    known = torch.version.hip is None  # AMD's compiler has no such option
    return tiles, {"maxnreg": 128} if narrow and known else {}


def allocate_output(query: Tensor, keys: Tensor, values: Tensor, requested: StatisticsRequest) -> ForwardOutput:
    """Allocate the outputs."""
    batch, heads, queries, _ = query.shape
    measured = requested.peak or requested.entropy or requested.moments
    by_key = batch, heads, keys.shape[2]
    nothing = (0,)
    return ForwardOutput(
        *_allocate_context(query, values),
        measured=query.new_empty(STATISTICS if measured else 0, batch, heads, queries, dtype=torch.float32),
        argmax=query.new_empty(batch, heads, queries if requested.peak else 0, dtype=torch.int64),
        best=query.new_empty(batch, heads, queries, requested.top, dtype=torch.float32),
        best_keys=query.new_empty(batch, heads, queries, requested.top, dtype=torch.int64),
        received=query.new_empty(by_key if requested.received else nothing, dtype=torch.float32),
        uniform=query.new_empty(by_key if requested.uniform else nothing, dtype=torch.float32),
    )


def allocate_minimal(query: Tensor, keys: Tensor, values: Tensor, requested: StatisticsRequest) -> ForwardOutput:
    """Allocate the outputs with less host time: without statistics the empty tensors are shared by all calls."""
    return (
        allocate_output(query, keys, values, requested)
        if any(requested)
        else ForwardOutput(*_allocate_context(query, values), *build_empty_statistics(query))
    )


def build_empty_statistics(like: Tensor) -> tuple[Tensor, ...]:
    """Fields of `ForwardOutput` from the third on, where no statistics are requested."""
    floats, integers = _build_empty_tensor(like.device, torch.float32), _build_empty_tensor(like.device, torch.int64)
    return floats, integers, floats, integers, floats, floats


def _allocate_context(query: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    batch, heads, queries, _ = query.shape
    context = query.new_empty(batch, heads, queries, values.shape[3], dtype=values.dtype)
    return context, query.new_empty(batch, heads, queries, dtype=torch.float32)


@cache
def _build_empty_tensor(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.empty(0, device=device, dtype=dtype)


def _launch_next_top(query: Tensor, keys: Tensor, plan: Plan, count: int, output: ForwardOutput) -> None:
    """Launch the pass for the next largest weight."""
    from regard.kernels.triton.flash import topk as programs

    batch, heads, queries, _ = query.shape
    sides = pack_rows(query), pack_rows(keys), output.lse, output.best, output.best_keys
    first = *sides, *_build_score_arguments(query, keys, plan), count, output.best.shape[3]
    shape = {"SLOTS": max(2, 1 << (count - 1).bit_length()), "LATE": plan.scale > 0}
    shape |= {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0}

    def start(tiles: list[int]) -> None:
        launch_kernel(
            programs.find_next_top,
            (_count_tiles(queries, tiles[0]), batch * heads),
            first,
            **shape,
            **build_tile_arguments(query, tiles),
        )

    tall, wide, *rest = plan.tiles
    launch_fitting("find_next_top", start, [tall, min(wide, WIDEST), *rest], query, query)


def _launch_column_sums(query: Tensor, keys: Tensor, plan: Plan, output: ForwardOutput) -> None:
    from regard.kernels.triton.flash import column_sums as programs

    batch, heads, _, _ = query.shape
    first = pack_rows(query), pack_rows(keys), output.lse, output.received, *_build_score_arguments(query, keys, plan)
    shape = {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0}

    def start(tiles: list[int]) -> None:
        launch_kernel(
            programs.sum_columns,
            (_count_tiles(keys.shape[2], tiles[1]), batch * heads),
            first,
            **shape,
            **build_tile_arguments(query, tiles),
        )

    launch_fitting("sum_columns", start, plan.tiles, query, query)


def _build_score_arguments(query: Tensor, keys: Tensor, plan: Plan) -> tuple[Any, ...]:
    """Arguments of the kernels that recompute scores."""
    (_, heads, queries, size), length = query.shape, keys.shape[2]
    bias, _, *scope = build_tensor_arguments(plan)
    return bias, *scope, plan.offset, plan.window, float(plan.scale), heads, heads // keys.shape[1], queries, length, size


def _launch_uniform_sums(query: Tensor, keys: Tensor, plan: Plan, uniform: Tensor) -> None:
    """Column sums of uniform weights, computed once for all heads unless the mask differs between heads."""
    from regard.kernels.triton.flash import column_sums as programs

    (batch, _, queries, _), length = query.shape, keys.shape[2]
    heads = 1 if plan.mask is None else plan.mask.shape[1]
    counts = uniform.new_empty(batch, heads, queries)
    sums = uniform if heads == uniform.shape[1] else uniform.new_empty(batch, heads, length)
    scope = *build_tensor_arguments(plan)[2:], plan.offset, plan.window, heads, queries, length
    shape = {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0, "M": MASK_TILE, "N": MASK_TILE}
    with torch.cuda.device(query.device) if query.is_cuda else nullcontext():  # the device of Triton's launch
        launch_kernel(programs.count_keys, (_count_tiles(queries, MASK_TILE), batch * heads), (counts, *scope), **shape)
        launch_kernel(
            programs.sum_uniform, (_count_tiles(length, MASK_TILE), batch * heads), (counts, sums, *scope), **shape
        )
    if sums is not uniform:
        uniform.copy_(sums.expand_as(uniform))


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
    gradients = Gradients(
        torch.empty_like(query, memory_format=torch.contiguous_format),
        torch.empty_like(keys, memory_format=torch.contiguous_format),
        torch.empty_like(values, memory_format=torch.contiguous_format),
        lse.new_empty(batch, heads, span) if wants_bias else _build_empty_tensor(lse.device, lse.dtype),
        lse.new_empty(batch, heads, queries) if wants_centres else _build_empty_tensor(lse.device, lse.dtype),
    )
    tiles = [min(tile, 64) for tile in plan.tiles[:2]] + plan.tiles[2:]  # the backward holds twice as much as the forward
    if plan.centres is not None:
        if wants_bias:
            raise ValueError("a bias has no gradient beside windows that queries place")
        pulled = gradients.centres if wants_centres else None
        windows.backward(gradient, query, keys, values, context, lse, plan._replace(tiles=tiles), (*gradients[:3], pulled))
        return gradients
    sides = pack_rows(query), pack_rows(keys), pack_rows(values), pack_rows(gradient), lse, torch.empty_like(lse)
    numbers = build_number_arguments(query, keys, values, plan)
    shape = {"V": round_up(values.shape[3]), **build_scope_flags(plan)}

    def launch_dq(tiles: list[int]) -> None:
        grid = _count_tiles(queries, tiles[0]), batch * heads
        first = (
            *sides,
            pack_rows(context),
            pack_rows(gradients.query),
            None,
            None,
            *build_tensor_arguments(plan),
            plan.seed,
            *numbers,
        )
        launch_kernel(programs.write_dq, grid, first, **shape, EVEN=False, **build_tile_arguments(query, tiles))

    def launch_dkv(tiles: list[int]) -> None:
        grid = _count_tiles(keys.shape[2], tiles[1]), batch * keys.shape[1]
        bias, _, *scope = build_tensor_arguments(plan)
        offset, window, _, *others = numbers
        first = (
            *sides,
            pack_rows(gradients.keys),
            pack_rows(gradients.values),
            bias,
            *scope,
            plan.seed,
            offset,
            window,
            *others,
        )
        launch_kernel(programs.write_dkv, grid, first, **shape, **build_tile_arguments(query, tiles))

    launch_fitting("write_dq", launch_dq, tiles, query, values)
    launch_fitting("write_dkv", launch_dkv, tiles, query, values)
    if wants_bias:
        _launch_bias(sides, values, plan, numbers, gradients.bias)
    return gradients


def _launch_bias(sides: tuple[Any, ...], values: Tensor, plan: Plan, numbers: tuple[Any, ...], d_bias: Tensor) -> None:
    """Launch the kernel of dBias."""
    from regard.kernels.triton.flash import backward as programs

    (batch, heads, span), query = d_bias.shape, sides[0][0]
    bias, _, *scope = build_tensor_arguments(plan)
    offset, window, _, *others = numbers

    def start(tiles: list[int]) -> None:
        tile = min(*tiles[:2], 32)  # it has twice as many keys
        shape = {**build_tile_arguments(query, tiles), "M": tile, "V": round_up(values.shape[3])}
        kind = {name: shape[name] for name in shape if name != "N"}
        programs.write_dbias[(_count_tiles(span, tile), batch * heads)](
            *sides, d_bias, bias, *scope, plan.seed, offset, window, *others,
            CAUSAL=plan.causal, WINDOWED=plan.window >= 0, **kind,
        )  # fmt: skip

    launch_fitting("write_dbias", start, plan.tiles, query, values)


def compute_weights(query: Tensor, keys: Tensor, v: Tensor | None, plan: Plan, selection: Selection) -> Tensor:
    """Launch the kernel of selected float32 weights; with `v` the score is additive."""
    from regard.kernels.triton.flash.weights import weights_kernel as program

    (batch, heads, queries, size), length, count = query.shape, keys.shape[2], len(selection.queries)
    head_count = heads if selection.heads is None else len(selection.heads)
    key_range = range(length) if selection.keys is None else selection.keys
    weights = query.new_empty(batch, head_count, count, len(key_range), dtype=torch.float32)
    if weights.numel() == 0:
        return weights
    bias, _, *scope = build_tensor_arguments(plan)

    def start(tiles: list[int]) -> None:
        program[(_count_tiles(count, tiles[0]), batch * head_count)](
            pack_rows(query), pack_rows(keys), None if v is None else (v, *broadcast_strides(v, 1)), selection.lse, weights,
            selection.queries, selection.heads, bias, *scope,
            plan.offset, plan.window, plan.scale, heads, head_count, heads // keys.shape[1], queries, length, count, size,
            key_range.start, key_range.stop,
            ADDITIVE=v is not None, CAUSAL=plan.causal, WINDOWED=plan.window >= 0, **build_tile_arguments(query, tiles),
        )  # fmt: skip

    launch_fitting("weights", start, plan.tiles, query, query)
    return weights


def _count_tiles(length: int, tile: int) -> int:
    return -(-length // tile)
