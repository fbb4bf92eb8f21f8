"""Launcher of split-K decoding: number of splits, partial results, and their combination."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.runtime.tiles import launch_largest
from regard.kernels.triton.flash.arguments import Plan, build_tensor_arguments, build_tile_arguments, pack_rows
from regard.kernels.triton.flash.configs import estimate_shared_memory, round_up

MAX_SPLITS = 64
"""The most splits that one program combines."""


class StepOutput(NamedTuple):
    """Context, and float32 weights if requested."""

    context: Tensor
    weights: Tensor | None


def run_step(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, wants_weights: bool) -> StepOutput:
    """Launch two kernels: partial attention over each split of the keys, and their combination."""
    from regard.kernels.triton.additive.arguments import use_device
    from regard.kernels.triton.additive.split_k import join_kernel

    (batch, heads, queries, _), length, size, count = query.shape, keys.shape[2], values.shape[3], count_splits(keys, plan)
    shape = batch, heads, queries
    context = query.new_empty(*shape, size, dtype=values.dtype)
    parts = query.new_empty(*shape, count, size, dtype=torch.float32)
    tops, masses = query.new_empty(2, *shape, count, dtype=torch.float32)
    scores = query.new_full((*shape, length), -torch.inf, dtype=torch.float32) if wants_weights else None
    weights = None if scores is None else torch.empty_like(scores)
    _launch_split(query, keys, values, plan, (scores, parts, tops, masses))
    with use_device(query):
        join_kernel[(batch * heads * queries,)](
            scores, parts, tops, masses, None, context, weights, None, length, size, count, 0.0, 1.0,
            COLUMNS=1024, SPLITS=_next_power(count), VALUES=_next_power(size), DROPOUT=False, num_warps=4,
        )  # fmt: skip
    return StepOutput(context, weights)


def _launch_split(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, outputs: tuple[Tensor | None, ...]) -> None:
    """Launch the partial attention with the largest tile of keys that fits on the GPU."""
    from regard.kernels.triton.decode.split_k import split_kernel

    (batch, heads, queries, dims), (_, key_heads, length, _), size = query.shape, keys.shape, values.shape[3]
    bias, _, *scope = build_tensor_arguments(plan)
    group, count = heads // key_heads, count_splits(keys, plan)
    numbers = heads, group, queries, length, dims, size, count
    sides = (
        pack_rows(query),
        pack_rows(keys),
        pack_rows(values),
        *outputs,
        bias,
        *scope,
        plan.offset,
        plan.window,
        plan.scale,
    )
    tall, first, warps, stages = round_up(group * queries), *plan.tiles[1:]

    def start(tiles: list[int]) -> None:
        shape = {
            "CAUSAL": plan.causal,
            "WINDOWED": plan.window >= 0,
            "V": round_up(size),
            **build_tile_arguments(query, tiles),
        }
        split_kernel[(count, batch * key_heads)](*sides, *numbers, **shape)

    sets = [[tall, first, warps, stages]]
    sets += [[tall, first >> halvings, warps, 1] for halvings in range(first.bit_length() - 4)]  # 16 is the smallest tl.dot
    sizes = round_up(dims), round_up(size), query.element_size()
    launch_largest(
        start,
        sets,
        lambda tiles: estimate_shared_memory("forward", tiles, *sizes),
        query.device,
        ("decode", *sets[0], *sizes),
    )


def count_splits(keys: Tensor, plan: Plan) -> int:
    """The number of splits: whole tiles each, enough to fill the GPU, at most what one program can combine."""
    from regard.kernels.triton.additive.launch import count_keys_per_program

    batch, key_heads, length, _ = keys.shape
    return -(-length // count_keys_per_program(batch * key_heads, length, plan.tiles[1], 4, keys.device, MAX_SPLITS))


def _next_power(count: int) -> int:
    return 1 << (count - 1).bit_length()
