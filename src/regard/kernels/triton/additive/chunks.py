"""Chunks of heads and queries whose scores, with the inputs of `compare`, are in memory at a time."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor

from regard.kernels.triton.additive.arguments import (
    WARP,
    ScoreInputs,
    Tiles,
    count_multiprocessors,
    parts,
    round_up,
    split_keys,
    uses_tensor_cores,
)

HEADS = 65535
"""The most programs along the last axis of a grid, one per head."""
CELLS = 1 << 31
"""The most scores of a head, whose offsets are 32-bit."""


class Chunk(NamedTuple):
    """Some heads, numbered through the batch, and some queries of each."""

    heads: range
    rows: range


def count_input_bytes(sides: ScoreInputs, value: Tensor | None) -> int:
    """The bytes of the inputs."""
    return sum(each.numel() * each.element_size() for each in (sides.query, sides.key, value) if each is not None)


def limit_workspace(sides: ScoreInputs, value: Tensor | None, tiles: Tiles, back: bool, kept: int = 0) -> int:
    """The workspace in bytes, so that with context or gradients it stays below twice the inputs, but at least `least`.

    With values of the size of the keys the context is a third of the inputs, and gradients are as large as these. `kept` is
    the size of scores saved in the forward.
    """
    inputs = count_input_bytes(sides, value)
    return tiles.room or max(tiles.least, inputs * 3 // 5 - kept if back else inputs * 3 // 2)


class Workspace(NamedTuple):
    """Peak bytes per head of a chunk, and per head of one launch of `compare` for its inputs."""

    head: int
    side: int
    launch: int

    def of(self, heads: int) -> int:
        """Bytes of a number of heads."""
        return heads * self.head + min(heads, self.launch) * self.side

    def most(self, room: int) -> int:
        """The most heads that fit."""
        few = room // (self.head + self.side)
        return few if few < self.launch else (room - self.launch * self.side) // self.head


def estimate_workspace(
    sides: ScoreInputs,
    value: Tensor | None,
    rows: int,
    tiles: Tiles,
    back: bool,
    kept: int = 0,
    hides: bool = False,
    lean: bool = False,
) -> Workspace:
    """Workspace per head of a chunk of queries.

    The forward has scores with the inputs of `compare`; the backward has scores, which dScores overwrite, with weights or
    their gradient, or with partial sums of dq. A `lean` backward has half-precision weights in place of scores, and no
    gradient of the weights.
    """
    (keys, hidden), bytes_each = sides.key.shape[2:], sides.query.element_size()
    tall, wide = round_up(rows, tiles.tall), round_up(keys, tiles.wide)
    launch = count_heads_per_launch(sides, tall, wide, tiles)
    sided = 0 if kept else (tall + wide) * hidden * (2 if uses_tensor_cores(sides, tiles) else 4)
    if not back:
        return Workspace(4 * tall * wide, sided, launch)
    _, several = split_keys(wide, tiles, hides, sides.key.dtype)
    flows = 0 if lean else tall * wide * (2 if value is None else value.element_size())
    beside = max(flows, (several - 1) * rows * hidden * bytes_each)  # the first part lies in its place
    sums = 8 * (wide // tiles.wide)  # two of each tile of weights
    cells = tall * (2 * wide + sums if lean else 4 * wide)
    return Workspace(cells + beside, max(0, sided - beside), launch)


def count_heads_per_launch(sides: ScoreInputs, tall: int, wide: int, tiles: Tiles) -> int:
    """Heads of one launch of `compare`: enough programs to fill the GPU, or a quarter of all heads.

    Its inputs exist for these alone. A multiprocessor of an H200 runs two programs by fours, and eight by pairs.
    """
    fours, heads = uses_tensor_cores(sides, tiles), sides.query.shape[0] * sides.query.shape[1]
    rows, columns = (tiles.four_rows, tiles.four_columns) if fours else (tiles.rows, tiles.columns)
    programs = parts(tall, rows) * parts(wide, columns)
    return max(1, (2 if fours else 8) * count_multiprocessors(sides.query.device) // programs, heads // 4)


def split_chunks(
    sides: ScoreInputs,
    value: Tensor | None,
    tiles: Tiles,
    back: bool,
    kept: int = 0,
    hides: bool = False,
    lean: bool = False,
) -> list[Chunk]:
    """Chunks of whole heads if one fits, of equal size; else tiles of the queries of one head.

    A chunk has as many heads as fit, and in the backward as fill the GPU. `kept` is the size of scores saved in the
    forward; `hides` is True under a mask; `lean` as in `need`.
    """
    batch, groups, queries, hidden = sides.query.shape
    count, keys, held = batch * groups, sides.key.shape[2], limit_workspace(sides, value, tiles, back, kept)
    each = estimate_workspace(sides, value, queries, tiles, back, kept, hides, lean)
    if not back:  # the inputs of a single chunk are freed before the context is allocated
        read = 0 if value is None else count * queries * value.shape[3] * value.element_size()
        once = max(each.of(count), count * each.head + read)
        held = max(held, each.of(count)) if once < 2 * count_input_bytes(sides, value) else held
    tall, wide = round_up(queries, tiles.tall), round_up(keys, tiles.wide)
    if each.of(1) <= held and tall * wide < CELLS:
        most = (
            tiles.fill * count_multiprocessors(sides.query.device) // count_programs(keys, hidden, tiles) if back else count
        )
        return split_by_heads(count, queries, max(1, min(most, each.most(held), HEADS)))
    some = tiles.tall
    while (
        some < queries
        and (some + tiles.tall) * wide < CELLS
        and estimate_workspace(sides, value, some + tiles.tall, tiles, back, kept, hides, lean).of(1) <= held
    ):
        some += tiles.tall
    return split_by_rows(count, queries, some)


@lru_cache
def split_by_heads(heads: int, queries: int, most: int) -> list[Chunk]:
    """Chunks of at most `most` heads with all queries."""
    return [Chunk(these, range(queries)) for these in split_range(heads, most)]


@lru_cache
def split_by_rows(heads: int, queries: int, most: int) -> list[Chunk]:
    """Chunks of at most `most` queries of one head."""
    return [Chunk(range(head, head + 1), rows) for head in range(heads) for rows in split_range(queries, most)]


def count_programs(keys: int, hidden: int, tiles: Tiles) -> int:
    """Programs of `both` for one head."""
    return parts(hidden * round_up(keys, tiles.both), WARP * tiles.both * tiles.both_warps)


def saves_scores(sides: ScoreInputs, value: Tensor, tiles: Tiles, hides: bool) -> bool:
    """True if the scores are saved for the backward: one chunk in the forward, and whole heads in the backward."""
    inputs = count_input_bytes(sides, value)
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    most = batch * groups * round_up(queries, tiles.tall) * round_up(keys, tiles.wide) * 4
    if most > tiles.kept * inputs or len(split_chunks(sides, value, tiles, back=False)) > 1:
        return False
    return len(split_chunks(sides, value, tiles, back=True, kept=most, hides=hides)[0].rows) == queries


def split_range(count: int, most: int) -> Iterator[range]:
    """Split a range into the fewest, nearly equal ranges of at most `most`."""
    several = parts(count, most)
    edges = [count * part // several for part in range(several + 1)]
    return (range(*edge) for edge in pairwise(edges))
