"""Launchers of predicted windows: tiles, register limits, and buffers sorted by window."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.triton.flash.arguments import Plan, fit, flags, rows, scoped, sized, start, told
from regard.kernels.triton.flash.configs import block
from regard.kernels.triton.flash.launch_window_sort import padded

HELD: dict[str, tuple[list[int], int]] = {
    "forward": ([64, 32, 4, 3], 128),
    "of_queries": ([64, 32, 4, 3], 128),
    "turned": ([32, 64, 4, 3], 128),
}
"""Configurations for narrow heads: queries, keys, warps and stages of a program, and the register limit per thread.

With 128 of them four programs run on a multiprocessor. A window ends anywhere in a tile, so that smaller tiles waste
fewer loads.
"""


def held(program: str, tiles: list[int], query: Tensor, values: Tensor) -> tuple[list[int], dict[str, int]]:
    """Tiles and register limit of a kernel; `tiles` for wide heads, float32, or where these are smaller."""
    narrow = query.element_size() == 2 and max(block(query.shape[3]), block(values.shape[3])) <= 64
    if not narrow or tiles[0] * tiles[1] < 64 * 64 or program not in HELD:
        return tiles, {}
    chosen, registers = HELD[program]
    return chosen, {"maxnreg": registers} if torch.version.hip is None else {}  # AMD's compiler has no such option


def even(keys: Tensor, plan: Plan, tiles: list[int]) -> bool:
    """True if keys have no padding and fill whole tiles, so that loads need no mask."""
    return plan.centres is not None and plan.keep is None and keys.shape[2] % tiles[1] == 0


class Beside(NamedTuple):
    """Buffers of q, dO, log-sum-exp and Δ, sorted by window.

    They take as much memory as queries and contexts. The kernel of dK and dV reads them tile by tile without indirection.
    """

    query: Tensor
    gradient: Tensor
    numbers: Tensor


def beside(query: Tensor, gradient: Tensor, lse: Tensor) -> Beside:
    """Allocate the buffers, padded to whole tiles."""
    batch, heads, queries, size = query.shape
    long = padded(queries)
    return Beside(
        query.new_empty(batch, heads, long, size),
        gradient.new_empty(batch, heads, long, gradient.shape[3]),
        lse.new_empty(2, batch, heads, long),
    )


def backward(gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, context: Tensor, lse: Tensor,
             plan: Plan, made: tuple[Tensor, Tensor, Tensor, Tensor | None]) -> None:  # fmt: skip
    """Launch the backward to query, keys, values and, unless None, centres, into the outputs `made`."""
    from regard.kernels.triton.flash import backward as programs
    from regard.kernels.triton.flash import backward_windows

    batch, heads, queries, _ = query.shape
    d_query, d_keys, d_values, d_centres = made
    found = beside(query, gradient, lse)
    memory = rows(keys), rows(values)
    first = rows(query), *memory, rows(gradient), lse, None, rows(context), rows(d_query), d_centres, tuple(found)
    then = rows(found.query), *memory, rows(found.gradient), found.numbers, rows(d_keys), rows(d_values)
    rest = *scoped(plan), plan.seed, *told(query, keys, values, plan)
    shape = {"V": block(values.shape[3]), **flags(plan)}
    tiles, registers = held("of_queries", plan.tiles, query, values)

    def queries_by(tiles: list[int]) -> None:
        grid = padded(queries) // tiles[0], batch * heads
        kind = {**registers, "EVEN": even(keys, plan, tiles)}
        start(programs.of_queries, grid, (*first, *rest), **shape, **kind, **sized(query, tiles))

    fit("of_queries", queries_by, tiles, query, values, "predicted_window")
    tiles, few = held("turned", plan.tiles, query, values)

    def memory_by(tiles: list[int]) -> None:
        grid = -(-keys.shape[2] // tiles[1]), batch * keys.shape[1]
        start(backward_windows.of_memory, grid, (*then, *rest), **shape, **few, **sized(query, tiles))

    fit("turned", memory_by, tiles, query, values, "predicted_window")
