"""A picture as an axis: the places of a map, and the pixels that each of them stands for."""

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from regard.data.axis import Image
from regard.data.image.writing import pixels_of


def shown(picture: Shaped[Tensor, "channels height width"], stride: int, whole: int = 0) -> Image:
    """A picture as a model reads it, whose map has a place for each square of `stride` x `stride` pixels.

    Before the places there are as many for the `whole` as the model has. Where the squares reach beyond the picture it is
    filled up with white, so that every place is as large as the others.
    """
    pixels = pixels_of(picture)
    pixels = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
    rows, columns = (-(-side // stride) for side in pixels.shape[:2])
    more = [(0, rows * stride - pixels.shape[0]), (0, columns * stride - pixels.shape[1]), (0, 0)]
    filled = np.pad(pixels, more, constant_values=255)
    return Image((rows, columns), (rows * stride, columns * stride), filled, ("whole",) * whole)
