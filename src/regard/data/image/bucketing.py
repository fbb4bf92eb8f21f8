"""In which order pictures of different sizes are taken, and where that order is cut into batches.

Pictures of nearly the same height stand together and, among them, those of nearly the same width: from narrow to wide at one
height and back from wide to narrow at the next, so that neighbours are alike wherever a batch is cut. Sizes are told apart
coarsely, and each picture counts as much as the largest of its level: most batches then have one of a few shapes, the same
in every epoch, which a GPU has seen before (training/cuda_graphs.py). That costs some more filling.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.bucketing import round_lengths

Numbers = NDArray[np.int64]
STEPS = 2
"""How many heights, and how many widths, there are from one size to twice that size."""


class Order(NamedTuple):
    """The level of each picture, in whose order they are taken, and the places in that order at which batches begin."""

    level: Numbers
    cuts: list[int]
    room: Numbers
    """Frames, height and width of the largest picture on the level of each: a batch has the room that its pictures have."""


def order(sizes: Numbers, budget: int, multiple: int = 1) -> Order:
    """`sizes` are rows of frames, height and width. A batch has at most `budget` pixels, filling included, or one picture.

    Within a level the pictures may come in any order, since each counts with the most frames, height and width there.
    """
    sizes = np.maximum(sizes, 1)
    sizes[:, 1:] = -(-sizes[:, 1:] // multiple) * multiple
    frames, heights, widths = sizes[:, 0], round_lengths(sizes[:, 1], STEPS), round_lengths(sizes[:, 2], STEPS)
    _, row = np.unique(heights, return_inverse=True)
    keys = np.stack((frames, heights, np.where(row % 2 == 0, widths, -widths)), axis=1)
    _, level = np.unique(keys, axis=0, return_inverse=True)
    level = level.reshape(-1)
    taken = np.argsort(level, kind="stable")
    first = np.unique(level[taken], return_index=True)[1]
    room = np.maximum.reduceat(sizes[taken], first)[level]
    return Order(level, _cuts(room[taken].tolist(), budget), room)


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
