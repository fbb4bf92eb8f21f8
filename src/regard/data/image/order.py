"""In which order pictures of different sizes are taken, and where that order is cut into batches.

Pictures of nearly the same height stand together and, among them, those of nearly the same width: from narrow to wide at one
height and back from wide to narrow at the next, so that neighbours are alike wherever a batch is cut.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.levels import levels

Numbers = NDArray[np.int64]


class Order(NamedTuple):
    """The level of each picture, in whose order they are taken, and the places in that order at which batches begin."""

    level: Numbers
    cuts: list[int]


def order(sizes: Numbers, budget: int, multiple: int = 1) -> Order:
    """`sizes` are rows of frames, height and width. A batch has at most `budget` pixels, filling included, or one picture.

    Within a level the pictures may come in any order, since each counts with the most frames, height and width there.
    """
    sizes = np.maximum(sizes, 1)
    sizes[:, 1:] = -(-sizes[:, 1:] // multiple) * multiple
    frames, heights, widths = sizes[:, 0], levels(sizes[:, 1], 4), levels(sizes[:, 2], 16)
    _, row = np.unique(heights, return_inverse=True)
    keys = np.stack((frames, heights, np.where(row % 2 == 0, widths, -widths)), axis=1)
    _, level = np.unique(keys, axis=0, return_inverse=True)
    level = level.reshape(-1)
    taken = np.argsort(level, kind="stable")
    _, first, place = np.unique(level[taken], return_index=True, return_inverse=True)
    largest = np.maximum.reduceat(sizes[taken], first)[place.reshape(-1)]
    return Order(level, _cuts(largest.tolist(), budget))


def _cuts(sizes: list[list[int]], budget: int) -> list[int]:
    """As many at a time as the budget holds, and at least one."""
    cuts, most = [0], [0, 0, 0]
    for place, size in enumerate(sizes):
        grown = [max(pair) for pair in zip(most, size, strict=True)]
        count = place - cuts[-1] + 1
        if count > 1 and count * grown[0] * grown[1] * grown[2] > budget:
            cuts.append(place)
            grown = size
        most = grown
    return [*cuts, len(sizes)]
