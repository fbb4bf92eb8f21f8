"""Launchers of sparsemax and entmax attention; plans, strides and tiles are flash's."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.triton.flash.arguments import (
    Plan,
    broadcast_strides,
    build_number_arguments,
    build_tensor_arguments,
    build_tile_arguments,
    launch_fitting,
    launch_kernel,
    pack_rows,
)
from regard.kernels.triton.flash.configs import round_up

MAX_PASSES = 32
"""The most passes over the keys for a threshold. Newton's method took three to eight for normal scores of 4096 keys."""


class Alpha(NamedTuple):
    """Alpha of entmax: one for all heads, or in `alphas` one per head with a gradient."""

    alpha: float
    alphas: Tensor | None = None


class ForwardOutput(NamedTuple):
    """Outputs of the forward: the context, and of each query its maximum score, the threshold below, and Σ e."""

    context: Tensor
    edges: Tensor


class Gradients(NamedTuple):
    """Outputs of the backward; that of alpha is empty where it is not learned."""

    query: Tensor
    keys: Tensor
    values: Tensor
    alphas: Tensor


def allocate_output(query: Tensor, values: Tensor) -> ForwardOutput:
    """Allocate the outputs of the forward."""
    batch, heads, queries, _ = query.shape
    context = query.new_empty(batch, heads, queries, values.shape[3], dtype=values.dtype)
    return ForwardOutput(context, query.new_empty(3, batch, heads, queries, dtype=torch.float32))


def forward(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, alpha: Alpha) -> ForwardOutput:
    """Launch the forward."""
    from regard.kernels.triton.entmax import forward as programs

    batch, heads, queries, _ = query.shape
    output = allocate_output(query, values)
    sides = pack_rows(query), pack_rows(keys), pack_rows(values), pack_rows(output.context), output.edges
    rest = *_build_scope_arguments(plan, alpha), alpha.alpha, MAX_PASSES, *_build_number_arguments(query, keys, values, plan)

    def start(tiles: list[int]) -> None:
        grid = -(-queries // tiles[0]), batch * heads
        kind = _build_compile_arguments(values, plan, alpha)
        launch_kernel(programs.forward, grid, (*sides, *rest), **kind, **build_tile_arguments(query, tiles))

    launch_fitting("forward", start, plan.tiles, query, values, "entmax")
    return output


def backward(
    gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, edges: Tensor, plan: Plan, alpha: Alpha
) -> Gradients:
    """Launch the backward; the gradient of alpha is summed at the end, deterministically."""
    from regard.kernels.triton.entmax import backward as programs

    batch, heads, queries, _ = query.shape
    gradients = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (query, keys, values)]
    means = edges.new_empty(batch, heads, queries)
    d_alpha = None if alpha.alphas is None else edges.new_empty(batch, heads, queries)
    sides = *(pack_rows(tensor) for tensor in (query, keys, values, gradient)), edges, means
    rest = *_build_scope_arguments(plan, alpha), alpha.alpha, *_build_number_arguments(query, keys, values, plan)
    d_query, d_keys, d_values = (pack_rows(gradient) for gradient in gradients)
    kind = _build_compile_arguments(values, plan, alpha)

    def launch_dq(tiles: list[int]) -> None:
        grid = -(-queries // tiles[0]), batch * heads
        first = *sides, d_query, d_alpha, *rest
        launch_kernel(programs.write_dq, grid, first, **kind, **build_tile_arguments(query, tiles))

    def launch_dkv(tiles: list[int]) -> None:
        grid = -(-keys.shape[2] // tiles[1]), batch * keys.shape[1]
        first = *sides, d_keys, d_values, *rest
        launch_kernel(programs.write_dkv, grid, first, **kind, **build_tile_arguments(query, tiles))

    tiles = [min(tile, 64) for tile in plan.tiles[:2]] + plan.tiles[2:]  # the backward holds twice as much as the forward
    launch_fitting("write_dq", launch_dq, tiles, query, values, "entmax")
    launch_fitting("write_dkv", launch_dkv, tiles, query, values, "entmax")
    d_alphas = edges.new_empty(0)
    if alpha.alphas is not None and d_alpha is not None:
        d_alphas = d_alpha.sum((0, 2)).sum_to_size(alpha.alphas.shape).clone()  # an operator's output may be no view
    return Gradients(gradients[0], gradients[1], gradients[2], d_alphas)


def _build_scope_arguments(plan: Plan, alpha: Alpha) -> tuple[Any, ...]:
    _, _, *scope = build_tensor_arguments(plan)
    alphas = None if alpha.alphas is None else (alpha.alphas, *broadcast_strides(alpha.alphas, 1))
    return alphas, *scope, plan.seed


def _build_number_arguments(query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> tuple[Any, ...]:
    """The numbers of flash with another scale: tiles compute scores in units of log 2, and here in natural units."""
    offset, window, _, scale, *rest = build_number_arguments(query, keys, values, plan)
    return offset, window, scale * math.log(2), *rest


def _build_compile_arguments(values: Tensor, plan: Plan, alpha: Alpha) -> dict[str, Any]:
    power = {2.0: 1, 1.5: 2}.get(alpha.alpha, 0) if alpha.alphas is None else 0
    return {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0, "POWER": power, "V": round_up(values.shape[3])}
