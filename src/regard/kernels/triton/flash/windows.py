"""Launchers of predicted windows: tiles, register limits, and buffers sorted by window."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.triton.flash.arguments import (
    Plan,
    build_number_arguments,
    build_scope_flags,
    build_tensor_arguments,
    build_tile_arguments,
    launch_fitting,
    launch_kernel,
    pack_rows,
)
from regard.kernels.triton.flash.configs import round_up
from regard.kernels.triton.flash.launch_window_sort import pad_length

CONFIGS: dict[str, tuple[list[int], int]] = {
    "forward": ([64, 32, 4, 3], 128),
    "write_dq": ([64, 32, 4, 3], 128),
    "write_dkv_windows": ([32, 64, 4, 3], 128),
}
"""Configurations for narrow heads: queries, keys, warps and stages of a program, and the register limit per thread.

With 128 of them four programs run on a multiprocessor. A window ends anywhere in a tile, so that smaller tiles waste
fewer loads.
"""


def select_config(program: str, tiles: list[int], query: Tensor, values: Tensor) -> tuple[list[int], dict[str, int]]:
    """Tiles and register limit of a kernel; `tiles` for wide heads, float32, or where these are smaller."""
    narrow = query.element_size() == 2 and max(round_up(query.shape[3]), round_up(values.shape[3])) <= 64
    if not narrow or tiles[0] * tiles[1] < 64 * 64 or program not in CONFIGS:
        return tiles, {}
    chosen, registers = CONFIGS[program]
    return chosen, {"maxnreg": registers} if torch.version.hip is None else {}  # AMD's compiler has no such option


def is_even(keys: Tensor, plan: Plan, tiles: list[int]) -> bool:
    """True if keys have no padding and fill whole tiles, so that loads need no mask."""
    return plan.centres is not None and plan.keep is None and keys.shape[2] % tiles[1] == 0


class SortedBuffers(NamedTuple):
    """Buffers of q, dO, log-sum-exp and Δ, sorted by window.

    They take as much memory as queries and contexts. The kernel of dK and dV reads them tile by tile without indirection.
    """

    query: Tensor
    gradient: Tensor
    numbers: Tensor


def allocate_buffers(query: Tensor, gradient: Tensor, lse: Tensor) -> SortedBuffers:
    """Allocate the buffers, padded to whole tiles."""
    batch, heads, queries, size = query.shape
    padded = pad_length(queries)
    return SortedBuffers(
        query.new_empty(batch, heads, padded, size),
        gradient.new_empty(batch, heads, padded, gradient.shape[3]),
        lse.new_empty(2, batch, heads, padded),
    )


def backward(gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, context: Tensor, lse: Tensor,
             plan: Plan, gradients: tuple[Tensor, Tensor, Tensor, Tensor | None]) -> None:  # fmt: skip
    """Launch the backward to query, keys, values and, unless None, centres, into the outputs `made`."""
    from regard.kernels.triton.flash import backward as programs
    from regard.kernels.triton.flash import backward_windows

    batch, heads, queries, _ = query.shape
    d_query, d_keys, d_values, d_centres = gradients
    buffers = allocate_buffers(query, gradient, lse)
    memory = pack_rows(keys), pack_rows(values)
    first = (
        pack_rows(query),
        *memory,
        pack_rows(gradient),
        lse,
        None,
        pack_rows(context),
        pack_rows(d_query),
        d_centres,
        tuple(buffers),
    )
    memory_first = (
        pack_rows(buffers.query),
        *memory,
        pack_rows(buffers.gradient),
        buffers.numbers,
        pack_rows(d_keys),
        pack_rows(d_values),
    )
    rest = *build_tensor_arguments(plan), plan.seed, *build_number_arguments(query, keys, values, plan)
    shape = {"V": round_up(values.shape[3]), **build_scope_flags(plan)}
    tiles, registers = select_config("write_dq", plan.tiles, query, values)

    def launch_dq(tiles: list[int]) -> None:
        grid = pad_length(queries) // tiles[0], batch * heads
        kind = {**registers, "EVEN": is_even(keys, plan, tiles)}
        launch_kernel(programs.write_dq, grid, (*first, *rest), **shape, **kind, **build_tile_arguments(query, tiles))

    launch_fitting("write_dq", launch_dq, tiles, query, values, "predicted_window")
    tiles, limits = select_config("write_dkv_windows", plan.tiles, query, values)

    def launch_dkv(tiles: list[int]) -> None:
        grid = -(-keys.shape[2] // tiles[1]), batch * keys.shape[1]
        launch_kernel(
            backward_windows.write_dkv, grid, (*memory_first, *rest), **shape, **limits, **build_tile_arguments(query, tiles)
        )

    launch_fitting("write_dkv_windows", launch_dkv, tiles, query, values, "predicted_window")
