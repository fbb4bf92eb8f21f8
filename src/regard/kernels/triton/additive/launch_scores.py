"""Launcher of the additive scores of a chunk, the first step of forward and backward."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.capability import assembly
from regard.kernels.runtime.launch_cache import start
from regard.kernels.triton.additive import forward
from regard.kernels.triton.additive.arguments import Sides, Tiles, by_four, heads, limit, padded, parts, processors
from regard.kernels.triton.additive.chunks import Chunk, at_once, spread
from regard.kernels.triton.additive.precompute_exp import Some, by_unit
from regard.kernels.triton.additive.precompute_mma import turned


class Compared(NamedTuple):
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


def compare(
    sides: Sides,
    chunk: Chunk,
    scope: dict[str, Any],
    tiles: Tiles,
    total: Float[Tensor, "batch heads queries"] | None = None,
) -> Compared:
    """The scores of some heads and queries, or their weights by the log-sum-exp; `scope` are the arguments of `Scoped`."""
    keys, fours = sides.key.shape[2], by_four(sides, tiles)
    tall, wide, count = padded(len(chunk.rows), tiles.tall), padded(keys, tiles.wide), len(chunk.heads)
    tile = shape(wide, tiles, fours)
    programs = tall // tile.rows * (wide // tile.columns)
    hidden, dtype = sides.query.shape[3], torch.float32 if total is None else sides.query.dtype
    few = share(hidden, programs * count, tile, tiles, sides.query.device)
    units = few if total is None else padded(hidden, tile.step)
    scores = sides.query.new_empty(parts(hidden, units), count, tall, wide, dtype=dtype)
    for some in spread(count, at_once(sides, tall, wide, tiles)):
        these = range(chunk.heads.start + some.start, chunk.heads.start + some.stop)
        place = scores if len(some) == count else scores[:, some.start : some.stop]
        launch(sides, Chunk(these, chunk.rows), place, scope, tile, units, tiles, total)
    return Compared(scores, chunk)


class Tile(NamedTuple):
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


def shape(wide: int, tiles: Tiles, fours: bool) -> Tile:
    """Select the tile for the padded keys, by fours or by pairs of hidden units."""
    if not fours:
        down, across = min(tiles.down, tiles.rows), min(tiles.across, tiles.columns)
        told = {"num_warps": tiles.warps, **limit(tiles.registers)}
        return Tile(tiles.rows, tiles.columns, down, across, 2 * tiles.pairs, False, told)
    columns = tiles.four_columns if wide % tiles.four_columns == 0 else tiles.four_columns // 2
    told = {"num_warps": tiles.four_warps, "num_stages": tiles.four_stages}
    down, across = min(tiles.four_down, tiles.four_rows), min(tiles.four_across, columns)
    return Tile(tiles.four_rows, columns, down, across, 4, True, told)


def launch(
    sides: Sides,
    chunk: Chunk,
    scores: Float[Tensor, "parts heads padded_queries padded_keys"],
    scope: dict[str, Any],
    tile: Tile,
    units: int,
    tiles: Tiles,
    total: Float[Tensor, "batch all_heads queries"] | None,
) -> None:
    """Launch `compare` for the heads of one launch, with a part of the hidden units per program."""
    (_, _, queries, hidden), keys = sides.query.shape, sides.key.shape[2]
    splits, count, tall, wide = scores.shape
    sources, high = sides.sources(chunk.heads), units * splits
    queried, keyed = Some(sides.query, chunk.heads, chunk.rows, tall), Some(sides.key, sources, range(keys), wide)
    prepared = turned(queried, keyed, high // 4) if tile.fours else by_unit(queried, keyed, high, tile.rows, tile.columns)
    left, right = prepared
    given = {
        **scope,
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": whole(sides.v, high),
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
        "ASSEMBLY": assembly(),
        "FOURS": tile.fours,
        "WORDS": sides.v.dtype == torch.bfloat16,
        "SINGLE": sides.query.dtype == torch.float32,
        "WEIGHTS": total is not None,
    }
    start(forward.compare, (tall // tile.rows * (wide // tile.columns), splits, count), given, **tile.options)


def whole(v: Float[Tensor, "v_heads hidden"], high: int) -> Float[Tensor, "v_heads high"]:
    """v padded to whole parts, and aligned for reads by words of four."""
    if high > v.shape[1]:
        return torch.nn.functional.pad(v, (0, high - v.shape[1]))
    return v if v.data_ptr() % 8 == 0 else v.clone()


def share(hidden: int, programs: int, tile: Tile, tiles: Tiles, device: torch.device) -> int:
    """Hidden units of a program: all if there are enough programs to fill the GPU, else whole steps of a part.

    Four programs per multiprocessor by pairs are enough, of the eight that run there, and one by fours.
    """
    splits = max(1, min(tiles.splits, (1 if tile.fours else 4) * processors(device) // programs))
    return padded(parts(hidden, splits), tile.step)
