"""Bucketing of images: the order in which images of different sizes are taken, and where it is cut into batches.

Images of nearly the same height stand together and, among them, those of nearly the same width: from narrow to wide at one
height and back from wide to narrow at the next, so that neighbours are alike wherever a batch is cut. Levels are coarse,
and each image counts as much as the largest of its level: most batches then have one of a few shapes, the same in every
epoch, of which a GPU has a CUDA graph (training/cuda_graphs.py). That costs some more padding.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.bucketing import round_lengths

Numbers = NDArray[np.int64]
STEPS = 2
"""Heights, and widths, from one size to twice that size."""


class ImageBuckets(NamedTuple):
    """Level of each image, the positions in the sorted order at which batches begin, and the padded size of each image."""

    level: Numbers
    cuts: list[int]
    room: Numbers
    """Frames, height and width of the largest image of each image's level."""


def bucket_images(sizes: Numbers, budget: int, multiple: int = 1) -> ImageBuckets:
    """Bucket images: a batch has at most `budget` pixels, padding included, or one image.

    `sizes` are rows of frames, height and width. Within a level the images may come in any order, since each counts with
    the most frames, height and width of the level.
    """
    sizes = np.maximum(sizes, 1)
    sizes[:, 1:] = -(-sizes[:, 1:] // multiple) * multiple
    frames, heights, widths = sizes[:, 0], round_lengths(sizes[:, 1], STEPS), round_lengths(sizes[:, 2], STEPS)
    _, row = np.unique(heights, return_inverse=True)
    keys = np.stack((frames, heights, np.where(row % 2 == 0, widths, -widths)), axis=1)
    _, level = np.unique(keys, axis=0, return_inverse=True)
    level = level.reshape(-1)
    order = np.argsort(level, kind="stable")
    first = np.unique(level[order], return_index=True)[1]
    room = np.maximum.reduceat(sizes[order], first)[level]
    return ImageBuckets(level, _cut(room[order].tolist(), budget), room)


def _cut(sizes: list[list[int]], budget: int) -> list[int]:
    """Positions at which batches begin and end: as many images as the budget holds, and at least one."""
    cuts, largest = [0], [0, 0, 0]
    for place, size in enumerate(sizes):
        grown = [max(pair) for pair in zip(largest, size, strict=True)]
        count = place - cuts[-1] + 1
        if count > 1 and count * grown[0] * grown[1] * grown[2] > budget:
            cuts.append(place)
            grown = size
        largest = grown
    return [*cuts, len(sizes)]
