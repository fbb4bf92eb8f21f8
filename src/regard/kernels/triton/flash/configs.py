"""Tiles from the largest to the smallest, and how much shared memory programs take for them: rows that are multiplied.

Measured by benchmarks/room.py, which compiles for chips that are not there. Stages come on top where a chip can load
ahead, so that what is here is exact for one stage and a little low for more.
"""

from functools import cache

SETS = [[128, 64, 4, 3], [64, 64, 4, 2], [64, 32, 4, 2], [32, 32, 4, 1], [16, 16, 4, 1]]
"""Queries, keys, warps and stages of one program."""

SUMMED = {"turned": 0, "of_queries": 1, "of_memory": 2}
"""Of programs of the way back: with how many matrices of tall x wide they sum that go through shared memory."""

WIDEST = 64
"""Keys of a tile at most that are summed by threads (apart.py): of more they would keep more than registers hold."""


def down_from(tiles: list[int]) -> list[list[int]]:
    """These, and all that are smaller."""
    return _down_from(*tiles)


@cache
def _down_from(*tiles: int) -> list[list[int]]:
    return [[*tiles], *(each for each in SETS if each[0] * each[1] < tiles[0] * tiles[1])]


def need(program: str, tiles: list[int], size: int, value: int, width: int) -> int:
    """Bytes that a program takes for heads of `size` and `value`, in powers of two, of numbers of `width` bytes."""
    tall, wide = tiles[:2]
    if program == "of_bias":  # a tile of queries meets twice as many keys
        return 3 * min(tall, wide, 32) * (size + value) * width
    if program in SUMMED:
        return ((tall + wide) * (size + value) + SUMMED[program] * tall * wide) * width
    if program in ("received", "following", "weigh"):
        return (tall + wide) * size * width
    return (tall * size + wide * max(size, value) + tall * wide) * width


def smallest(program: str, size: int, value: int) -> int:
    """Bytes that a program takes with the smallest tiles at most: GPUs before Ampere widen half precision to single."""
    return need(program, SETS[-1], block(size), block(value), 4)


def block(size: int) -> int:
    """The next power of two, 16 at least: what the tensor cores multiply."""
    return max(16, 1 << (size - 1).bit_length())
