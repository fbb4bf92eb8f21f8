"""Which heads and which of their queries have their scores, and the exponentials of both sides, held at a time."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor

from regard.kernels.additive_triton.arguments import Sides, Tiles, padded, parts, processors

HEADS = 65535
"""Programs along the last axis of a grid, each of which has a head."""
CELLS = 1 << 31
"""Scores of a head, whose places are numbers of 32 bits."""


class Chunk(NamedTuple):
    """Some heads, counted through the batch, and some queries of each."""

    heads: range
    rows: range


def size(sides: Sides, value: Tensor | None) -> int:
    """The bytes of the inputs."""
    return sum(each.numel() * each.element_size() for each in (sides.query, sides.key, value) if each is not None)


def room(sides: Sides, value: Tensor | None, tiles: Tiles, back: bool) -> int:
    """Beside context and gradients, which are results, as much as stays below twice the inputs; `least` where that is more.

    With values of the size of the keys the context is a third of the inputs, and gradients are as much as these.
    """
    inputs = size(sides, value)
    return tiles.room or max(tiles.least, inputs * 3 // 5 if back else inputs * 3 // 2)


def need(rows: int, keys: int, hidden: int, cell: int) -> int:
    """Bytes at the highest: scores and exponentials in single precision, or so many for each query and key."""
    return max(4 * (rows + keys) * hidden + 4 * rows * keys, cell * rows * keys)


def beside(held: Sequence[Tensor], numbers: int, room: int) -> int:
    """How many parts of so many numbers, in single precision, there is room for beside what is held, and for their sum."""
    return (room - sum(each.numel() * each.element_size() for each in held)) // (4 * numbers) - 1


def cell(value: Tensor | None, back: bool) -> int:
    """Bytes for each query and key beside no exponentials: scores; on the way back weights too, or what flows there."""
    return 4 + (2 if value is None else value.element_size()) if back else 4


def chunks(sides: Sides, value: Tensor | None, tiles: Tiles, back: bool, whole: bool = False) -> list[Chunk]:
    """Whole heads if one fits, spread evenly; else tiles of the queries of one.

    As many heads as fill the processors or, with `whole`, as there is room for.
    """
    batch, groups, queries, hidden = sides.query.shape
    held, each, keys = room(sides, value, tiles, back), cell(value, back), sides.key.shape[2]
    tall, wide = padded(queries, tiles.tall), padded(keys, tiles.wide)
    once = batch * groups * need(tall, wide, hidden, each)
    if not back and once < 2 * size(sides, value):  # there is no context yet while the only chunk is compared
        held = max(held, once)
    most = batch * groups
    if not whole:
        most = tiles.fill * processors(sides.query.device) // programs(queries, keys, hidden, tiles, back)
    return _chunks(batch * groups, queries, keys, hidden, held, each, max(1, most), tiles)


def programs(queries: int, keys: int, hidden: int, tiles: Tiles, back: bool) -> int:
    """How many one head is: tiles of `compare`, or half as many again as those of the `gather` that has fewer.

    Of `both`, whose programs have more registers, three times as many where a thread has 32 keys.
    """
    if back and tiles.both:
        return parts(3 * hidden * padded(keys, tiles.both), 32 * 32 * tiles.both_warps)
    if back:
        return parts(3 * parts(hidden, tiles.gather_units) * parts(min(queries, keys), tiles.gather_rows), 2)
    return parts(queries, tiles.rows) * parts(keys, tiles.columns)


@lru_cache
def _chunks(heads: int, queries: int, keys: int, hidden: int, held: int, each: int, most: int, tiles: Tiles) -> list[Chunk]:
    tall, wide = padded(queries, tiles.tall), padded(keys, tiles.wide)
    whole = need(tall, wide, hidden, each)
    if whole <= held and tall * wide < CELLS:
        return [Chunk(these, range(queries)) for these in spread(heads, min(most, held // whole, HEADS))]
    some = tiles.tall
    while some < queries and (some + tiles.tall) * wide < CELLS and need(some + tiles.tall, wide, hidden, each) <= held:
        some += tiles.tall
    return [Chunk(range(head, head + 1), rows) for head in range(heads) for rows in spread(queries, some)]


def keeps(sides: Sides, value: Tensor, tiles: Tiles) -> bool:
    """Whether the scores, all of one chunk there, and of whole heads back, may be kept from the one to the other."""
    inputs = size(sides, value)
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    most = batch * groups * padded(queries, tiles.tall) * padded(keys, tiles.wide) * 4
    if most > tiles.kept * inputs or len(chunks(sides, value, tiles, back=False, whole=True)) > 1:
        return False
    return len(chunks(sides, value, tiles, back=True)[0].rows) == queries


def spread(count: int, most: int) -> Iterator[range]:
    """Ranges of at most so many, as few as can be and as equal as can be."""
    several = parts(count, most)
    edges = [count * part // several for part in range(several + 1)]
    return (range(*edge) for edge in pairwise(edges))
