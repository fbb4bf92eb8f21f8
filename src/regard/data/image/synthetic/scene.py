"""Scenes: things of a shape, a colour and a size, each at its place, and the picture of them.

Places and sizes are whole numbers, in 256ths of the picture's side, so that two scenes are the same or are not.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.image.synthetic.shapes import distance, extent

SIDE = 256
WHOLE = (0, 0, SIDE, SIDE)
"""Left, top, right and bottom of the picture."""

MARGIN = 4
"""The least room around a thing."""

SIZES = {"small": 16, "medium": 24, "big": 36}
"""The radius of each size."""

COLOURS = {
    "red": (0.86, 0.12, 0.12), "orange": (1.0, 0.55, 0.0), "yellow": (0.95, 0.85, 0.1), "green": (0.1, 0.62, 0.2),
    "blue": (0.12, 0.3, 0.9), "purple": (0.55, 0.15, 0.7), "pink": (1.0, 0.55, 0.75), "black": (0.08, 0.08, 0.08),
}  # fmt: skip


class Thing(NamedTuple):
    """One shape in a scene: the place of its middle, its radius, and how far it is turned, in degrees."""

    shape: str
    colour: str
    x: int
    y: int
    radius: int
    turn: int = 0

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        left, top, right, bottom = (self.radius * number for number in extent(self.shape, self.turn))
        return self.x + left, self.y + top, self.x + right, self.y + bottom


class Scene(NamedTuple):
    """Things on white."""

    things: tuple[Thing, ...]

    def picture(self, size: int = 64) -> Float[Tensor, "3 height width"]:
        """The scene as a square picture of so many pixels a side; what comes later lies above."""
        if size < 1:
            raise ValueError(f"a picture needs a side of 1 or more pixels, got {size}")
        canvas = np.ones((3, size, size), np.float32)
        for thing in self.things:
            _paint(canvas, thing, size)
        return torch.from_numpy(canvas)

    def boxes(self) -> Float[Tensor, "things 4"]:
        """The box of each thing, as centre x, centre y, width and height in shares of the picture."""
        edges = torch.tensor([thing.edges for thing in self.things], dtype=torch.float32).view(-1, 4) / SIDE
        low, high = edges[:, :2], edges[:, 2:]
        return torch.cat(((low + high) / 2, high - low), dim=1)

    def region(self, things: Iterable[int], rows: int, columns: int) -> Bool[Tensor, "rows columns"]:
        """Map of so many rows and columns with the places of some things, where attention to them should lie."""
        mask = torch.zeros(rows, columns, dtype=torch.bool)
        for number in things:
            left, top, right, bottom = (max(edge, 0) / SIDE for edge in self.things[number].edges)
            across = slice(int(left * columns), math.ceil(right * columns))
            mask[int(top * rows) : math.ceil(bottom * rows), across] = True
        return mask


def placed(
    chance: Random, radius: int, others: Sequence[Thing], part: tuple[int, int, int, int] = WHOLE
) -> tuple[int, int] | None:
    """A free place within a part of the picture, given by its edges; None where a few tries find none."""
    left, top, right, bottom = part
    room = radius + MARGIN
    if right - left < 2 * room or bottom - top < 2 * room:
        return None
    for _ in range(20):
        x, y = chance.randint(left + room, right - room), chance.randint(top + room, bottom - room)
        if all((x - other.x) ** 2 + (y - other.y) ** 2 >= (room + other.radius) ** 2 for other in others):
            return x, y
    return None


def relations(first: Sequence[Thing], second: Sequence[Thing]) -> set[str]:
    """Relations of some things to others: those of "left", "right", "above" and "below" that are true of all of them."""
    one, other = (np.array([thing.edges for thing in things]) for things in (first, second))
    before = one[:, 2:].max(0) <= other[:, :2].min(0)  # across, and down
    after = one[:, :2].min(0) >= other[:, 2:].max(0)
    names = ("left", "above", "right", "below")
    return {name for name, true in zip(names, (*before, *after), strict=True) if true}


def _paint(canvas: NDArray[np.float32], thing: Thing, size: int) -> None:
    """Put a thing onto the canvas: each pixel takes as much of its colour as the thing covers of it."""
    scale = size / SIDE
    (column, across), (row, down) = (divmod(place * scale, 1) for place in (thing.x, thing.y))
    cover = _cover(thing.shape, thing.turn, thing.radius * scale, across, down)
    reach = len(cover) // 2
    top, left = int(row) - reach, int(column) - reach
    part = canvas[:, max(top, 0) : max(top + len(cover), 0), max(left, 0) : max(left + len(cover), 0)]
    visible = cover[max(-top, 0) :, max(-left, 0) :][: part.shape[1], : part.shape[2]]
    colour = np.array(COLOURS[thing.colour], np.float32)[:, None, None]
    part += (colour - part) * visible


@lru_cache(maxsize=1024)  # at 64 pixels a side, things of a few sizes have few different edges
def _cover(shape: str, turn: int, radius: float, x: float, y: float) -> NDArray[np.float32]:
    """Coverage of each pixel around a thing whose middle lies at x, y in the central pixel."""
    reach = math.ceil(radius) + 1
    places = np.arange(-reach, reach + 1) + 0.5
    across, down = np.meshgrid(places - x, places - y)
    points = np.stack((across.ravel(), down.ravel()), axis=1) / max(radius, 1e-3)
    return np.clip(0.5 - distance(shape, points, turn) * radius, 0, 1).reshape(across.shape).astype(np.float32)
