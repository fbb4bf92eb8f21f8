"""Launchers of sparsemax and entmax attention; plans, strides and tiles are flash's."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.triton.flash.arguments import Plan, fit, rows, scoped, sized, strides, told
from regard.kernels.triton.flash.configs import block

PASSES = 32
"""The most passes over the keys for a threshold. Newton's method took three to eight for normal scores of 4096 keys."""


class Bend(NamedTuple):
    """Alpha of entmax: one for all heads, or in `alphas` one per head with a gradient."""

    alpha: float
    alphas: Tensor | None = None


class Found(NamedTuple):
    """Outputs of the forward: the context, and of each query its maximum score and the threshold below it."""

    context: Tensor
    edges: Tensor


class Gradients(NamedTuple):
    """Outputs of the backward; that of alpha is empty where it is not learned."""

    query: Tensor
    keys: Tensor
    values: Tensor
    alphas: Tensor


def empty(query: Tensor, values: Tensor) -> Found:
    """Allocate the outputs of the forward."""
    batch, heads, queries, _ = query.shape
    context = query.new_empty(batch, heads, queries, values.shape[3], dtype=values.dtype)
    return Found(context, query.new_empty(2, batch, heads, queries, dtype=torch.float32))


def forward(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, bend: Bend) -> Found:
    """Launch the forward."""
    from regard.kernels.triton.entmax import forward as programs

    batch, heads, queries, _ = query.shape
    found = empty(query, values)
    sides = rows(query), rows(keys), rows(values), rows(found.context), found.edges
    rest = *_scope(plan, bend), bend.alpha, PASSES, *_numbers(query, keys, values, plan)

    def start(tiles: list[int]) -> None:
        grid = -(-queries // tiles[0]), batch * heads
        programs.forward[grid](*sides, *rest, **_kind(values, plan, bend), **sized(query, tiles))

    fit("forward", start, plan.tiles, query, values, "entmax")
    return found


def backward(
    gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, edges: Tensor, plan: Plan, bend: Bend
) -> Gradients:
    """Launch the backward; the gradient of alpha is summed at the end, deterministically."""
    from regard.kernels.triton.entmax import backward as programs

    batch, heads, queries, _ = query.shape
    made = [torch.empty_like(each, memory_format=torch.contiguous_format) for each in (query, keys, values)]
    means = edges.new_empty(batch, heads, queries)
    d_alpha = None if bend.alphas is None else edges.new_empty(batch, heads, queries)
    sides = *(rows(each) for each in (query, keys, values, gradient)), edges, means
    rest = *_scope(plan, bend), bend.alpha, *_numbers(query, keys, values, plan)
    d_query, d_keys, d_values = (rows(each) for each in made)
    kind = _kind(values, plan, bend)

    def queries_by(tiles: list[int]) -> None:
        grid = -(-queries // tiles[0]), batch * heads
        programs.of_queries[grid](*sides, d_query, d_alpha, *rest, **kind, **sized(query, tiles))

    def memory_by(tiles: list[int]) -> None:
        grid = -(-keys.shape[2] // tiles[1]), batch * keys.shape[1]
        programs.of_memory[grid](*sides, d_keys, d_values, *rest, **kind, **sized(query, tiles))

    tiles = [min(each, 64) for each in plan.tiles[:2]] + plan.tiles[2:]  # the backward holds twice as much as the forward
    fit("of_queries", queries_by, tiles, query, values, "entmax")
    fit("of_memory", memory_by, tiles, query, values, "entmax")
    d_alphas = edges.new_empty(0)
    if bend.alphas is not None and d_alpha is not None:
        d_alphas = d_alpha.sum((0, 2)).sum_to_size(bend.alphas.shape).clone()  # an operator's output may be no view
    return Gradients(made[0], made[1], made[2], d_alphas)


def _scope(plan: Plan, bend: Bend) -> tuple[Any, ...]:
    _, _, *scope = scoped(plan)
    alphas = None if bend.alphas is None else (bend.alphas, *strides(bend.alphas, 1))
    return alphas, *scope, plan.seed


def _numbers(query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> tuple[Any, ...]:
    """The numbers of flash with another scale: tiles compute scores in units of log 2, and here in natural units."""
    offset, window, _, scale, *rest = told(query, keys, values, plan)
    return offset, window, scale * math.log(2), *rest


def _kind(values: Tensor, plan: Plan, bend: Bend) -> dict[str, Any]:
    usual = {2.0: 1, 1.5: 2}.get(bend.alpha, 0) if bend.alphas is None else 0
    return {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0, "BEND": usual, "V": block(values.shape[3])}
