"""Axis of an image: the positions of its feature map, and the pixels that each of them stands for."""

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from regard.data.axis import Image
from regard.data.image.writing import pixels_of


def image_axis(picture: Shaped[Tensor, "channels height width"], stride: int, whole: int = 0) -> Image:
    """Axis of an image as a model reads it, whose map has a position for each square of `stride` x `stride` pixels.

    `whole` positions for the image as a whole come first. Where the squares reach beyond the image it is padded with white,
    so that all positions are of one size.
    """
    pixels = pixels_of(picture)
    pixels = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
    rows, columns = (-(-side // stride) for side in pixels.shape[:2])
    padding = [(0, rows * stride - pixels.shape[0]), (0, columns * stride - pixels.shape[1]), (0, 0)]
    padded = np.pad(pixels, padding, constant_values=255)
    return Image((rows, columns), (rows * stride, columns * stride), padded, ("whole",) * whole)
