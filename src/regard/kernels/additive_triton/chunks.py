"""Which heads and which of their queries have their scores, and the exponentials of both sides, held at a time."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor

from regard.kernels.additive_triton.arguments import Sides, Tiles, padded

LEAST = 96 << 20
"""Bytes that may always be held: in smaller chunks the host takes longer to launch than an H200 to compute."""


class Chunk(NamedTuple):
    """Some heads, counted through the batch, and some queries of each."""

    heads: range
    rows: range


def room(sides: Sides, value: Tensor | None, tiles: Tiles, back: bool) -> int:
    """The bytes of the inputs, and as long as there are no gradients half as many more; LEAST where these are small."""
    inputs = sum(each.numel() * each.element_size() for each in (sides.query, sides.key, value) if each is not None)
    return tiles.room or max(LEAST, inputs if back else inputs * 3 // 2)


def need(rows: int, keys: int, hidden: int, back: bool) -> int:
    """Bytes at the highest: scores and exponentials in single precision; on the way back scores, slopes and half weights."""
    there = 4 * (rows + keys) * hidden + 4 * rows * keys
    return max(there, 10 * rows * keys) if back else there


def chunks(sides: Sides, value: Tensor | None, tiles: Tiles, back: bool) -> list[Chunk]:
    """Whole heads if one fits, spread evenly; else tiles of the queries of one."""
    batch, groups, queries, hidden = sides.query.shape
    return _chunks(batch * groups, queries, sides.key.shape[2], hidden, room(sides, value, tiles, back), tiles, back)


@lru_cache
def _chunks(heads: int, queries: int, keys: int, hidden: int, held: int, tiles: Tiles, back: bool) -> list[Chunk]:
    wide = padded(keys, tiles.wide)
    whole = need(padded(queries, tiles.tall), wide, hidden, back)
    if whole <= held:
        return [Chunk(these, range(queries)) for these in spread(heads, held // whole)]
    some = tiles.tall
    while some < queries and need(some + tiles.tall, wide, hidden, back) <= held:
        some += tiles.tall
    return [Chunk(range(head, head + 1), rows) for head in range(heads) for rows in spread(queries, some)]


def spread(count: int, most: int) -> Iterator[range]:
    """Ranges of at most so many, as few as can be and as equal as can be."""
    parts = -(-count // most)
    edges = [count * part // parts for part in range(parts + 1)]
    return (range(*edge) for edge in pairwise(edges))
