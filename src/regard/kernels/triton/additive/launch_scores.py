"""Launcher of the additive scores of a chunk, the first step of forward and backward."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.capability import allows_assembly
from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive import forward
from regard.kernels.triton.additive.arguments import (
    ScoreInputs,
    Tiles,
    count_multiprocessors,
    heads,
    limit_registers,
    parts,
    round_up,
    uses_tensor_cores,
)
from regard.kernels.triton.additive.chunks import Chunk, count_heads_per_launch, split_range
from regard.kernels.triton.additive.precompute_exp import RowRange, precompute_exponentials
from regard.kernels.triton.additive.precompute_mma import transpose_sides


class ScoreParts(NamedTuple):
    """Partial scores Σ v tanh of a chunk, one for each part of the hidden units, padded to whole tiles, undefined if masked.

    Or weights in place of scores, 0 at masked positions, in the precision of the queries.
    """

    scores: Float[Tensor, "parts heads padded_queries padded_keys"]
    chunk: Chunk

    def arguments(self) -> dict[str, Any]:
        """The fields under the names of the kernels' arguments."""
        parts, _, tall, wide = self.scores.shape
        place = {"base": self.chunk.heads.start, "begin": self.chunk.rows.start, "count": len(self.chunk.rows)}
        return {"scores": self.scores, **place, "tall": tall, "wide": wide, "size": self.scores.stride(0), "parts": parts}


def compare_chunk(
    sides: ScoreInputs,
    chunk: Chunk,
    scope: dict[str, Any],
    tiles: Tiles,
    total: Float[Tensor, "batch heads queries"] | None = None,
) -> ScoreParts:
    """Scores of some heads and queries, or their weights by the log-sum-exp; `scope` are the fields of `MaskArguments`."""
    keys, fours = sides.key.shape[2], uses_tensor_cores(sides, tiles)
    tall, wide, count = round_up(len(chunk.rows), tiles.tall), round_up(keys, tiles.wide), len(chunk.heads)
    tile = select_tile(wide, tiles, fours)
    programs = tall // tile.rows * (wide // tile.columns)
    hidden, dtype = sides.query.shape[3], torch.float32 if total is None else sides.query.dtype
    units_per_program = count_units_per_program(hidden, programs * count, tile, tiles, sides.query.device)
    units = units_per_program if total is None else round_up(hidden, tile.step)
    scores = sides.query.new_empty(parts(hidden, units), count, tall, wide, dtype=dtype)
    for launch_heads in split_range(count, count_heads_per_launch(sides, tall, wide, tiles)):
        batch_heads = range(chunk.heads.start + launch_heads.start, chunk.heads.start + launch_heads.stop)
        part = scores if len(launch_heads) == count else scores[:, launch_heads.start : launch_heads.stop]
        launch_scores(sides, Chunk(batch_heads, chunk.rows), part, scope, tile, units, tiles, total)
    return ScoreParts(scores, chunk)


class ScoreTile(NamedTuple):
    """Queries and keys of a program, its thread layout, and hidden units per step."""

    rows: int
    columns: int
    down: int
    across: int
    step: int
    fours: bool
    """True by words of four units (tensor cores), False by pairs."""
    options: dict[str, int]
    """Options of the compiler."""


def select_tile(wide: int, tiles: Tiles, fours: bool) -> ScoreTile:
    """Select the tile for the padded keys, by fours or by pairs of hidden units."""
    if not fours:
        down, across = min(tiles.down, tiles.rows), min(tiles.across, tiles.columns)
        options = {"num_warps": tiles.warps, **limit_registers(tiles.registers)}
        return ScoreTile(tiles.rows, tiles.columns, down, across, 2 * tiles.pairs, False, options)
    columns = tiles.four_columns if wide % tiles.four_columns == 0 else tiles.four_columns // 2
    options = {"num_warps": tiles.four_warps, "num_stages": tiles.four_stages}
    down, across = min(tiles.four_down, tiles.four_rows), min(tiles.four_across, columns)
    return ScoreTile(tiles.four_rows, columns, down, across, 4, True, options)


def launch_scores(
    sides: ScoreInputs,
    chunk: Chunk,
    scores: Float[Tensor, "parts heads padded_queries padded_keys"],
    scope: dict[str, Any],
    tile: ScoreTile,
    units: int,
    tiles: Tiles,
    total: Float[Tensor, "batch all_heads queries"] | None,
) -> None:
    """Launch `compare_kernel` for the heads of one launch, with a part of the hidden units per program."""
    (_, _, queries, hidden), keys = sides.query.shape, sides.key.shape[2]
    splits, count, tall, wide = scores.shape
    sources, high = sides.sources(chunk.heads), units * splits
    query_rows, key_rows = (
        RowRange(sides.query, chunk.heads, chunk.rows, tall),
        RowRange(sides.key, sources, range(keys), wide),
    )
    prepared = (
        transpose_sides(query_rows, key_rows, high // 4)
        if tile.fours
        else precompute_exponentials(query_rows, key_rows, high, tile.rows, tile.columns)
    )
    left, right = prepared
    arguments = {
        **scope,
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": pad_vector(sides.v, high),
        "left": left.data,
        "right": right.data,
        "row_reach": left.reach,
        "column_reach": right.reach,
        "total": total,
        "scores": scores,
        "base": chunk.heads.start,
        "source_base": sources.start,
        "begin": chunk.rows.start,
        "count": len(chunk.rows),
        "tall": tall,
        "wide": wide,
        "size": scores.stride(0),
        "units": units,
        "high": high,
        "T": queries,
        "S": keys,
        "D": hidden,
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "DOWN": tile.down,
        "ACROSS": tile.across,
        "PAIRS": tiles.pairs,
        "ASSEMBLY": allows_assembly(),
        "FOURS": tile.fours,
        "WORDS": sides.v.dtype == torch.bfloat16,
        "SINGLE": sides.query.dtype == torch.float32,
        "WEIGHTS": total is not None,
    }
    launch_cached(
        forward.compare_kernel, (tall // tile.rows * (wide // tile.columns), splits, count), arguments, **tile.options
    )


def pad_vector(v: Float[Tensor, "v_heads hidden"], high: int) -> Float[Tensor, "v_heads high"]:
    """v padded to whole parts, and aligned for reads by words of four."""
    if high > v.shape[1]:
        return torch.nn.functional.pad(v, (0, high - v.shape[1]))
    return v if v.data_ptr() % 8 == 0 else v.clone()


def count_units_per_program(hidden: int, programs: int, tile: ScoreTile, tiles: Tiles, device: torch.device) -> int:
    """Hidden units of a program: all if there are enough programs to fill the GPU, else whole steps of a part.

    Four programs per multiprocessor by pairs are enough, of the eight that run there, and one by fours.
    """
    splits = max(1, min(tiles.splits, (1 if tile.fours else 4) * count_multiprocessors(device) // programs))
    return round_up(parts(hidden, splits), tile.step)
