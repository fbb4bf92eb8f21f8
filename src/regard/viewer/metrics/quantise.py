"""Attention weights in eight bits, and smaller pictures of them that lose no peak.

    u = round(255 √(w / scale))

The square root spends the 256 levels where weights are small: the smallest weight that is not stored as 0 is 3.8e-6 of the
scale. What `restore` gives back is at most √w / 255 + 1 / 510² away from w (in units of the scale).
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

SMALLEST = 128
"""A pyramid ends where no side is longer than this."""


def scale_of(weights: npt.NDArray[Any]) -> float:
    """The weight that is stored as 255: 1, or the largest where a mechanism's weights go beyond 1."""
    return max(1.0, float(weights.max(initial=0.0)))


def quantise(weights: npt.NDArray[Any], scale: float = 1.0) -> Bytes:
    """Weights as bytes, `scale` being 255; below 0 counts as 0 and above `scale` as `scale`."""
    if weights.dtype == np.float16:  # there are 65,536 of them: looking each up is ten times as fast
        return _halves(float(scale))[weights.view(np.uint16)]
    part = np.clip(np.asarray(weights, np.float32) / np.float32(scale), 0, 1)
    return np.rint(255 * np.sqrt(part)).astype(np.uint8)


@cache
def _halves(scale: float) -> Bytes:
    """The byte of every float16, by its bits; those that are no number are nobody's weight."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return quantise(np.nan_to_num(every.astype(np.float32)), scale)


def quantise_signed(weights: npt.NDArray[Any], scale: float) -> Bytes:
    """Weights of both signs as bytes: 128 is 0, and 127 √(|w| / scale) goes either way, as in viewer/src/grid.ts."""
    part = np.clip(np.nan_to_num(np.asarray(weights, np.float32)) / np.float32(scale), -1, 1)
    return (128 + np.rint(127 * np.sign(part) * np.sqrt(np.abs(part)))).astype(np.uint8)


def restore(stored: Bytes, scale: float = 1.0) -> npt.NDArray[np.float32]:
    """The weights that bytes stand for."""
    return np.square(stored.astype(np.float32) / np.float32(255)) * np.float32(scale)


def pyramid(matrix: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """The matrix and ever smaller ones, each cell the maximum of up to 2 x 2 of the level below.

    Level l has ceil(rows / 2^l) x ceil(columns / 2^l) cells: a peak at (i, j) is at (i >> l, j >> l) of every level.
    """
    levels = [matrix]
    while max(levels[-1].shape) > SMALLEST:
        levels.append(_half(levels[-1]))
    return levels


def farthest(bytes_: Bytes) -> npt.NDArray[np.int16]:
    """Signed bytes as numbers whose maximum is the byte farthest from 128; `signed_bytes` turns them back."""
    away = bytes_.astype(np.int16) - 128
    return 2 * np.abs(away) + (away > 0)


def signed_bytes(order: npt.NDArray[Any]) -> Bytes:
    """The signed bytes of what `farthest` gave."""
    return (128 + np.where(order & 1, order >> 1, -(order >> 1))).astype(np.uint8)


def mean_pyramid(matrix: npt.NDArray[Any]) -> list[npt.NDArray[np.float32]]:
    """The matrix and ever smaller ones of the same sizes as in `pyramid`, each cell the mean of the weights below it."""
    levels = [np.asarray(matrix, np.float32)]
    while max(levels[-1].shape) > SMALLEST:
        levels.append(_mean_of_pairs(_mean_of_pairs(levels[-1], 0), 1))
    return levels


def reduce(matrix: npt.NDArray[Any], rows: int, columns: int) -> npt.NDArray[Any]:
    """The maximum of each block, in at most so many rows and columns; a side that is short enough stays as it is."""
    if rows < 1 or columns < 1:
        raise ValueError(f"a matrix is reduced to at least 1 x 1 cells, asked for {rows} x {columns}")
    return _blocks(_blocks(matrix, rows, -2), columns, -1)


def _half(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    tall = matrix[::2].copy()
    below = matrix[1::2]  # the last of an odd number has no partner
    np.maximum(tall[: len(below)], below, out=tall[: len(below)])
    wide = tall[:, ::2].copy()
    beside = tall[:, 1::2]
    np.maximum(wide[:, : beside.shape[1]], beside, out=wide[:, : beside.shape[1]])
    return wide


def _mean_of_pairs(matrix: npt.NDArray[np.float32], axis: int) -> npt.NDArray[np.float32]:
    """The mean of each two neighbours; the last of an odd number stays as it is."""
    first, second = (np.take(matrix, np.arange(start, matrix.shape[axis], 2), axis) for start in (0, 1))
    last = np.take(first, np.arange(second.shape[axis], first.shape[axis]), axis)
    paired = np.take(first, np.arange(second.shape[axis]), axis)
    return np.concatenate([(paired + second) / np.float32(2), last], axis)


def _blocks(matrix: npt.NDArray[Any], count: int, axis: int) -> npt.NDArray[Any]:
    length = matrix.shape[axis]
    if length <= count:
        return matrix
    return np.maximum.reduceat(matrix, np.arange(count) * length // count, axis=axis)
