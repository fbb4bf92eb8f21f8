"""A picture with the boxes of what was found on it."""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from regard.viewer.palettes import table

COLOURS, SHADES = "okabe_ito", 7
"""The eighth of its colours is black, as things may be."""


def framed(
    picture: UInt8[Tensor, "channels height width"],
    edges: Float[Tensor, "boxes 4"],
    labels: Int[Tensor, " boxes"],
) -> UInt8[Tensor, "3 height width"]:
    """The picture in colour, with a line of one pixel along the inside of each box, in the colour of its label.

    `edges` are left, top, right and bottom in shares of the picture. The first box lies on top.
    """
    colours = torch.from_numpy(table(COLOURS).copy())
    drawn = picture.expand(3, -1, -1).clone()
    _, height, width = drawn.shape
    for (left, top, right, bottom), label in reversed(list(zip(edges.tolist(), labels.tolist(), strict=True))):
        colour = colours[label % SHADES][:, None]
        first, last = _pixel(left, width), _pixel(right, width, end=True)
        upper, lower = _pixel(top, height), _pixel(bottom, height, end=True)
        for row in (upper, lower):
            drawn[:, row, first : last + 1] = colour
        for column in (first, last):
            drawn[:, upper : lower + 1, column] = colour
    return drawn


def _pixel(share: float, side: int, end: bool = False) -> int:
    """The pixel in which an edge begins, or ends."""
    return min(max(round(share * side) - end, 0), side - 1)
