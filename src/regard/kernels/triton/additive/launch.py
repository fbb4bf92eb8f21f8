"""Launchers of the forward: many queries, their weights, and a single query."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime import capability
from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive import forward, split_k
from regard.kernels.triton.additive.arguments import (
    Dropout,
    MaskArguments,
    ReadTile,
    ScoreInputs,
    Tiles,
    count_multiprocessors,
    heads,
    next_power,
    parts,
    round_up,
    use_device,
)
from regard.kernels.triton.additive.chunks import saves_scores, split_chunks
from regard.kernels.triton.additive.launch_scores import ScoreParts, compare_chunk


class ForwardOutput(NamedTuple):
    """Context, log-sum-exp of every query, the weights if requested, and the scores if saved."""

    context: Float[Tensor, "batch heads queries value"]
    total: Float[Tensor, "batch heads queries"]
    weights: Float[Tensor, "batch heads queries keys"] | None
    scores: Float[Tensor, "parts batch_heads padded_queries padded_keys"] | None = None


def run_forward(
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    scoped: MaskArguments,
    dropped: Dropout,
    dtype: torch.dtype,
    weights: torch.dtype | None,
    tiles: Tiles,
    save_scores: bool = False,
) -> ForwardOutput:
    """Scores, softmax and context, a chunk of heads or of queries at a time; `save_scores` returns the scores too."""
    value = value.contiguous()
    scope, drop, output = scoped.arguments(), dropped.arguments(), None
    save_scores = save_scores and saves_scores(sides, value, tiles, scoped.hides)
    with use_device(value):
        for chunk in split_chunks(sides, value, tiles, backward=False):
            compared = compare_chunk(sides, chunk, scope, tiles)
            output = output or allocate_output(sides, value, dtype, weights)  # reuses the freed inputs of `compare_kernel`
            read_values(compared, sides, value, {**scope, **drop}, output, tiles)
            if output.weights is not None:
                write_weights(compared, sides, scope, output.total, output.weights, tiles)
            if save_scores:
                output = output._replace(scores=compared.scores)
            del compared  # before the next is allocated
    assert output is not None, "there is always a chunk"
    return output


def allocate_output(sides: ScoreInputs, value: Tensor, dtype: torch.dtype, weights: torch.dtype | None) -> ForwardOutput:
    """Allocate the outputs."""
    whole = *sides.query.shape[:3], sides.key.shape[2]
    context = value.new_empty(*whole[:3], value.shape[3], dtype=dtype)
    total = value.new_empty(whole[:3], dtype=torch.float32)
    return ForwardOutput(context, total, None if weights is None else value.new_empty(whole, dtype=weights))


def read_values(
    compared: ScoreParts,
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    mask_arguments: dict[str, Any],
    output: ForwardOutput,
    tiles: Tiles,
) -> None:
    """Write context and log-sum-exp of a chunk; `mask_arguments` are those of mask and dropout."""
    size, (heads, count) = value.shape[3], map(len, compared.chunk)
    rows, columns, most, warps = select_read_tile(heads, count, value, tiles)
    width = max(16, min(most, next_power(size)))
    arguments = {
        **compared.arguments(),
        **mask_arguments,
        "value": value,
        "context": output.context,
        "total": output.total,
        "heads": sides.query.shape[1],
        "value_heads": value.shape[1],
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "V": size,
        "ROWS": rows,
        "COLUMNS": columns,
        "VALUES": width,
        "PRECISION": tiles.precision,
    }
    launch_cached(forward.read_kernel, (parts(count, rows), parts(size, width), heads), arguments, num_warps=warps)


def select_read_tile(heads: int, queries: int, value: Tensor, tiles: Tiles) -> ReadTile:
    """Select the tile of the product of weights and values."""
    if value.element_size() > 2 or capability.find_shared_memory(value.device) <= 64 << 10:  # a tile of values would not fit
        return tiles.read_single
    programs = parts(queries, tiles.read.rows) * parts(value.shape[3], tiles.read.values) * heads
    return tiles.read_thin if 2 * programs < count_multiprocessors(value.device) else tiles.read


def write_weights(
    compared: ScoreParts,
    sides: ScoreInputs,
    scope: dict[str, Any],
    total: Float[Tensor, "batch heads queries"] | None,
    weights: Float[Tensor, "batch heads queries keys"],
    tiles: Tiles,
) -> None:
    """Write the weights of a chunk by the log-sum-exp; without it the scores."""
    arguments = {
        **compared.arguments(),
        **scope,
        "total": total,
        "weights": weights,
        "heads": sides.query.shape[1],
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "ROWS": tiles.rows,
        "COLUMNS": tiles.columns,
        "SCORES": total is None,
    }
    down, across = parts(len(compared.chunk.rows), tiles.rows), parts(weights.shape[3], tiles.columns)
    launch_cached(forward.weights_kernel, (across, down, len(compared.chunk.heads)), arguments, num_warps=tiles.row_warps)


def compute_all_scores(sides: ScoreInputs, tiles: Tiles) -> Float[Tensor, "batch heads queries keys"]:
    """Scores Σ v tanh of all pairs, in the precision of the query."""
    all_scores = sides.query.new_empty(*sides.query.shape[:3], sides.key.shape[2])
    scope = MaskArguments().arguments()
    with use_device(all_scores):
        for chunk in split_chunks(sides, None, tiles, backward=False):
            write_weights(compare_chunk(sides, chunk, scope, tiles), sides, scope, None, all_scores, tiles)
    return all_scores


class StepOutput(NamedTuple):
    """Context of one query, and its weights before and after dropout."""

    context: Float[Tensor, "batch heads 1 value"]
    weights: Float[Tensor, "batch heads 1 keys"]
    dropped: Float[Tensor, "batch heads 1 keys"]


def run_step(
    query: Float[Tensor, "batch heads 1 hidden"],
    key: Float[Tensor, "batch key_heads keys hidden"],
    value: Float[Tensor, "batch value_heads keys value"],
    v: Float[Tensor, "v_heads hidden"],
    scoped: MaskArguments,
    dropped: Dropout,
    dtype: torch.dtype,
    tiles: Tiles,
) -> StepOutput:
    """Launch a decoder step: one query with split-K."""
    (batch, groups, _, hidden), keys, size = query.shape, key.shape[2], value.shape[3]
    columns, warps = select_block(batch * groups, key, value, tiles)
    keys_per_program = count_keys_per_program(
        batch * groups, keys, columns, tiles.step_threads // (32 * warps), query.device, tiles.step_parts
    )
    splits = parts(keys, keys_per_program)
    context = value.new_empty(batch, groups, 1, size, dtype=dtype)
    scores, weights, dropped_weights = (value.new_empty(batch, groups, 1, keys, dtype=torch.float32) for _ in range(3))
    tops, masses = value.new_empty(2, batch, groups, splits, dtype=torch.float32)
    arguments = {
        **scoped.arguments(),
        **dropped.arguments(),
        **heads(query, key, v),
        "scores": scores,
        "tops": tops,
        "masses": masses,
        "parts": value.new_empty(batch, groups, splits, size, dtype=torch.float32),
        "query": query.contiguous(),
        "key": key.contiguous(),
        "value": value.contiguous(),
        "v": v.contiguous(),
        "value_heads": value.shape[1],
        "context": context,
        "weights": weights,
        "dropped": dropped_weights,
        "S": keys,
        "D": hidden,
        "V": size,
        "reach": keys_per_program,
        "splits": splits,
        "finished": value.new_zeros(batch * groups, dtype=torch.int32),
        "COLUMNS": columns,
        "UNITS": next_power(hidden),
        "VALUES": next_power(size),
        "SPLITS": next_power(splits),
        "STAGES": count_stages(columns, key, value, tiles),
        "ASSEMBLY": capability.allows_assembly(),
    }
    with use_device(value):
        launch_cached(split_k.split_kernel, (splits * batch * groups, 1, 1), arguments, num_warps=warps)
    return StepOutput(context, weights, dropped_weights if dropped.rate else weights)


def select_block(groups: int, key: Tensor, value: Tensor, tiles: Tiles) -> tuple[int, int]:
    """Keys of a block of one query, a power of two, and its warps."""
    wide, most = max(next_power(key.shape[3]), next_power(value.shape[3])), tiles.step_keys
    if groups * tiles.step_parts < 4 * count_multiprocessors(key.device) and key.shape[2] >= 4 * most * tiles.step_parts:
        most *= 4
    columns = max(1, min(most, tiles.step_bytes // (key.element_size() * wide)))
    return columns, max(1, min(tiles.step_threads // 32, columns * wide // (32 * tiles.step_numbers)))


def count_stages(columns: int, key: Tensor, value: Tensor, tiles: Tiles) -> int:
    """Pipeline stages of the blocks of one query; one where shared memory is too small for more."""
    copied = sum(columns * next_power(tensor.shape[3]) * tensor.element_size() for tensor in (key, value)) * (
        tiles.step_stages - 1
    )
    room = capability.find_shared_memory(key.device)
    return tiles.step_stages if room > 64 << 10 and copied <= room - (16 << 10) else 1


def count_keys_per_program(groups: int, keys: int, tile: int, programs: int, device: torch.device, most: int) -> int:
    """Keys of a program: whole tiles, and enough to limit the splits and the programs per multiprocessor."""
    return round_up(parts(keys, min(parts(programs * count_multiprocessors(device), groups), most)), tile)
