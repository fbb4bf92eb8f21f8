"""Tile sizes from the largest to the smallest, and their shared memory.

Measured by benchmarks/room.py, which compiles for GPUs that are not present. Pipeline stages take more, so that the
estimate is exact for one stage and a little low for more.
"""

from functools import cache

TILE_SIZES = [[128, 64, 4, 3], [64, 64, 4, 2], [64, 32, 4, 2], [32, 32, 4, 1], [16, 16, 4, 1]]
"""Queries, keys, warps and stages of one program."""

SUMMED = {"write_dkv_windows": 0, "write_dq": 1, "write_dkv": 2}
"""Backward kernels, with the number of their tall x wide operands in shared memory."""

WIDEST = 64
"""The most keys of a tile with statistics per thread (statistics.py): more would spill registers."""


def list_smaller(tiles: list[int]) -> list[list[int]]:
    """These tiles and all smaller ones, largest first."""
    return _list_smaller(*tiles)


@cache
def _list_smaller(*tiles: int) -> list[list[int]]:
    return [[*tiles], *(sizes for sizes in TILE_SIZES if sizes[0] * sizes[1] < tiles[0] * tiles[1])]


def estimate_shared_memory(program: str, tiles: list[int], size: int, value: int, width: int) -> int:
    """Shared memory of a kernel for heads of `size` and `value`, powers of two, of elements of `width` bytes."""
    tall, wide = tiles[:2]
    if program == "write_dbias":  # a tile of queries has twice as many keys
        return 3 * min(tall, wide, 32) * (size + value) * width
    if program in SUMMED:
        return ((tall + wide) * (size + value) + SUMMED[program] * tall * wide) * width
    if program in ("sum_columns", "find_next_top", "weights"):
        return (tall + wide) * size * width
    return (tall * size + wide * max(size, value) + tall * wide) * width


def estimate_smallest_memory(program: str, size: int, value: int) -> int:
    """Upper bound of shared memory with the smallest tiles: GPUs before Ampere widen half precision to float32."""
    return estimate_shared_memory(program, TILE_SIZES[-1], round_up(size), round_up(value), 4)


def round_up(size: int) -> int:
    """The next power of two, at least 16, the smallest tl.dot."""
    return max(16, 1 << (size - 1).bit_length())
