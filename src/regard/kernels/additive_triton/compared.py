"""Launch the scores of a chunk: what every pass over queries and keys, there and back, begins with."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton import forward
from regard.kernels.additive_triton.arguments import Sides, Tiles, assembly, heads, limit, padded, parts, processors
from regard.kernels.additive_triton.chunks import Chunk
from regard.kernels.additive_triton.powers import Some, by_unit
from regard.kernels.gpu.started import start


class Compared(NamedTuple):
    """-2 Σ v r of a chunk, padded to whole tiles, over each part of the hidden units; anything where nothing is seen."""

    scores: Float[Tensor, "parts heads padded_queries padded_keys"]
    chunk: Chunk

    def arguments(self) -> dict[str, Any]:
        """As the kernels that read them name them."""
        parts, _, tall, wide = self.scores.shape
        place = {"base": self.chunk.heads.start, "begin": self.chunk.rows.start, "count": len(self.chunk.rows)}
        return {"scores": self.scores, **place, "tall": tall, "wide": wide, "size": self.scores.stride(0), "parts": parts}


def compare(sides: Sides, chunk: Chunk, scope: dict[str, Any], tiles: Tiles) -> Compared:
    """The scores of some heads and queries, less Σ v; `scope` is what `Scoped` tells the kernels."""
    (_, _, queries, hidden), keys = sides.query.shape, sides.key.shape[2]
    tall, wide = padded(len(chunk.rows), tiles.tall), padded(keys, tiles.wide)
    down, across, count = tall // tiles.rows, wide // tiles.columns, len(chunk.heads)
    units = share(hidden, down * across * count, tiles, sides.query.device)
    splits = parts(hidden, units)
    sources, high = sides.sources(chunk.heads), units * splits
    queried, keyed = Some(sides.query, chunk.heads, chunk.rows, tall), Some(sides.key, sources, range(keys), wide)
    left, right = by_unit(queried, keyed, high, tiles.rows, tiles.columns)
    scores = left.data.new_empty(splits, count, tall, wide)
    given = {
        **scope,
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": torch.nn.functional.pad(sides.v, (0, high - hidden)) if high > hidden else sides.v,
        "left": left.data,
        "right": right.data,
        "row_reach": left.reach,
        "column_reach": right.reach,
        "scores": scores,
        "base": chunk.heads.start,
        "source_base": sources.start,
        "begin": chunk.rows.start,
        "count": len(chunk.rows),
        "tall": tall,
        "wide": wide,
        "units": units,
        "high": high,
        "T": queries,
        "S": keys,
        "D": hidden,
        "ROWS": tiles.rows,
        "COLUMNS": tiles.columns,
        "DOWN": min(tiles.down, tiles.rows),
        "ACROSS": min(tiles.across, tiles.columns),
        "PAIRS": tiles.pairs,
        "ASSEMBLY": assembly(),
    }
    start(forward.compare, (down * across, splits, count), given, num_warps=tiles.warps, **limit(tiles.registers))
    return Compared(scores, chunk)


def share(hidden: int, programs: int, tiles: Tiles, device: torch.device) -> int:
    """How many hidden units a program takes: all if there are four programs a processor, else whole pairs of a part."""
    splits = max(1, min(tiles.splits, 4 * processors(device) // programs))
    return padded(parts(hidden, splits), 2 * tiles.pairs)
