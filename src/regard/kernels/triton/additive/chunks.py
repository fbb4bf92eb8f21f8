"""Chunks of heads and queries whose scores, with the inputs of `compare_kernel`, are in memory at a time."""

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
    return sum(tensor.numel() * tensor.element_size() for tensor in (sides.query, sides.key, value) if tensor is not None)


def limit_workspace(sides: ScoreInputs, value: Tensor | None, tiles: Tiles, backward: bool, saved_bytes: int = 0) -> int:
    """The workspace in bytes, so that with context or gradients it stays below twice the inputs, but at least `least`.

    With values of the size of the keys the context is a third of the inputs, and gradients are as large as these. The
    scores saved in the forward have `saved_bytes`.
    """
    inputs = count_input_bytes(sides, value)
    return tiles.room or max(tiles.least, inputs * 3 // 5 - saved_bytes if backward else inputs * 3 // 2)


class Workspace(NamedTuple):
    """Peak bytes per head of a chunk, and per head of one launch of `compare_kernel` for its inputs."""

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
    backward: bool,
    saved_bytes: int = 0,
    hides: bool = False,
    lean: bool = False,
) -> Workspace:
    """Workspace per head of a chunk of queries.

    The forward has scores with the inputs of `compare_kernel`; the backward has scores, which dScores overwrite, with
    weights or their gradient, or with partial sums of dq. A `lean` backward has half-precision weights in place of scores,
    and no gradient of the weights.
    """
    (keys, hidden), bytes_each = sides.key.shape[2:], sides.query.element_size()
    tall, wide = round_up(rows, tiles.tall), round_up(keys, tiles.wide)
    launch = count_heads_per_launch(sides, tall, wide, tiles)
    side_bytes = 0 if saved_bytes else (tall + wide) * hidden * (2 if uses_tensor_cores(sides, tiles) else 4)
    if not backward:
        return Workspace(4 * tall * wide, side_bytes, launch)
    _, several = split_keys(wide, tiles, hides, sides.key.dtype)
    da_bytes = 0 if lean else tall * wide * (2 if value is None else value.element_size())
    da_or_dq = max(da_bytes, (several - 1) * rows * hidden * bytes_each)  # the first part lies in its place
    sums = 8 * (wide // tiles.wide)  # two of each tile of weights
    cells = tall * (2 * wide + sums if lean else 4 * wide)
    return Workspace(cells + da_or_dq, max(0, side_bytes - da_or_dq), launch)


def count_heads_per_launch(sides: ScoreInputs, tall: int, wide: int, tiles: Tiles) -> int:
    """Heads of one launch of `compare_kernel`: enough programs to fill the GPU, or a quarter of all heads.

    Its inputs exist for these alone. A multiprocessor of an H200 runs two programs by fours, and eight by pairs.
    """
    mma, heads = uses_tensor_cores(sides, tiles), sides.query.shape[0] * sides.query.shape[1]
    rows, columns = (tiles.four_rows, tiles.four_columns) if mma else (tiles.rows, tiles.columns)
    programs = parts(tall, rows) * parts(wide, columns)
    return max(1, (2 if mma else 8) * count_multiprocessors(sides.query.device) // programs, heads // 4)


def split_chunks(
    sides: ScoreInputs,
    value: Tensor | None,
    tiles: Tiles,
    backward: bool,
    saved_bytes: int = 0,
    hides: bool = False,
    lean: bool = False,
) -> list[Chunk]:
    """Chunks of whole heads if one fits, of equal size; else tiles of the queries of one head.

    A chunk has as many heads as fit, and in the backward as fill the GPU. `saved_bytes` is that of scores
    saved in the forward; `hides` is True under a mask; `lean` as in `estimate_workspace`.
    """
    batch, groups, queries, hidden = sides.query.shape
    count, keys, room = batch * groups, sides.key.shape[2], limit_workspace(sides, value, tiles, backward, saved_bytes)
    workspace = estimate_workspace(sides, value, queries, tiles, backward, saved_bytes, hides, lean)
    if not backward:  # the inputs of a single chunk are freed before the context is allocated
        context_bytes = 0 if value is None else count * queries * value.shape[3] * value.element_size()
        peak = max(workspace.of(count), count * workspace.head + context_bytes)
        room = max(room, workspace.of(count)) if peak < 2 * count_input_bytes(sides, value) else room
    tall, wide = round_up(queries, tiles.tall), round_up(keys, tiles.wide)
    if workspace.of(1) <= room and tall * wide < CELLS:
        most = (
            tiles.fill * count_multiprocessors(sides.query.device) // count_programs(keys, hidden, tiles)
            if backward
            else count
        )
        return split_by_heads(count, queries, max(1, min(most, workspace.most(room), HEADS)))
    chunk_rows = tiles.tall
    while (
        chunk_rows < queries
        and (chunk_rows + tiles.tall) * wide < CELLS
        and estimate_workspace(sides, value, chunk_rows + tiles.tall, tiles, backward, saved_bytes, hides, lean).of(1)
        <= room
    ):
        chunk_rows += tiles.tall
    return split_by_rows(count, queries, chunk_rows)


@lru_cache
def split_by_heads(heads: int, queries: int, most: int) -> list[Chunk]:
    """Chunks of at most `most` heads with all queries."""
    return [Chunk(some_heads, range(queries)) for some_heads in split_range(heads, most)]


@lru_cache
def split_by_rows(heads: int, queries: int, most: int) -> list[Chunk]:
    """Chunks of at most `most` queries of one head."""
    return [Chunk(range(head, head + 1), rows) for head in range(heads) for rows in split_range(queries, most)]


def count_programs(keys: int, hidden: int, tiles: Tiles) -> int:
    """Programs of `backward_qkv` for one head."""
    return parts(hidden * round_up(keys, tiles.both), WARP * tiles.both * tiles.both_warps)


def saves_scores(sides: ScoreInputs, value: Tensor, tiles: Tiles, hides: bool) -> bool:
    """True if the scores are saved for the backward: one chunk in the forward, and whole heads in the backward."""
    inputs = count_input_bytes(sides, value)
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    most = batch * groups * round_up(queries, tiles.tall) * round_up(keys, tiles.wide) * 4
    if most > tiles.saved_scores * inputs or len(split_chunks(sides, value, tiles, backward=False)) > 1:
        return False
    return len(split_chunks(sides, value, tiles, backward=True, saved_bytes=most, hides=hides)[0].rows) == queries


def split_range(count: int, most: int) -> Iterator[range]:
    """Split a range into the fewest, nearly equal ranges of at most `most`."""
    several = parts(count, most)
    edges = [count * part // several for part in range(several + 1)]
    return (range(*edge) for edge in pairwise(edges))
