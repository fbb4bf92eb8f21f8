"""Shapes: how far a point is from the edge of each. From that distance a smooth edge is drawn at any size.

Every shape lies within the circle of radius 1 about its middle; x goes right and y down.
"""

import math

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

ROUND = {"circle": 0.0, "ring": 0.45}
"""Shapes between two circles about the middle: the radius of the inner one."""


def _around(radii: tuple[float, ...], count: int) -> Points:
    """Points at equal angles, the first on top, at radii that repeat."""
    angles = np.arange(count) * 2 * math.pi / count
    reach = np.array([radii[number % len(radii)] for number in range(count)])
    return np.stack((reach * np.sin(angles), -reach * np.cos(angles)), axis=1)


def _heart() -> Points:
    """x = 16 sin³ t, y = 13 cos t - 5 cos 2t - 2 cos 3t - cos 4t, made to fit."""
    t = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    corners = np.stack((16 * np.sin(t) ** 3, -y - 2.5), axis=1)
    return corners / np.hypot(corners[:, 0], corners[:, 1]).max()


OUTLINES: dict[str, Points] = {
    "square": np.array([[-0.7, -0.7], [0.7, -0.7], [0.7, 0.7], [-0.7, 0.7]]),
    "triangle": _around((1.0,), 3),
    "star": _around((1.0, 0.42), 10),
    "diamond": np.array([[0.0, -1.0], [0.65, 0.0], [0.0, 1.0], [-0.65, 0.0]]),
    "cross": np.array(
        [[-0.3, -0.9], [0.3, -0.9], [0.3, -0.3], [0.9, -0.3], [0.9, 0.3], [0.3, 0.3],
         [0.3, 0.9], [-0.3, 0.9], [-0.3, 0.3], [-0.9, 0.3], [-0.9, -0.3], [-0.3, -0.3]]
    ),
    "heart": _heart(),
}  # fmt: skip
"""The corners of all others, in order."""

SHAPES = ("circle", "square", "triangle", "star", "diamond", "cross", "ring", "heart")


def distance(shape: str, points: Points, turn: int = 0) -> NDArray[np.float64]:
    """Signed distance of points, rows of x and y, from a shape turned by so many degrees; negative inside."""
    if shape in ROUND:
        reach = np.hypot(points[:, 0], points[:, 1])
        return np.maximum(reach - 1, ROUND[shape] - reach) if ROUND[shape] else reach - 1
    corners = outline(shape, turn)
    sides = np.roll(corners, -1, axis=0) - corners
    from_corner = points[:, None] - corners
    along = np.clip((from_corner * sides).sum(2) / (sides * sides).sum(1), 0, 1)
    nearest = np.hypot(*np.moveaxis(from_corner - along[..., None] * sides, 2, 0)).min(1)
    return np.where(_inside(points, corners), -nearest, nearest)


def outline(shape: str, turn: int = 0) -> Points:
    """The corners of a shape, turned clockwise by so many degrees."""
    angle = math.radians(turn)
    turning = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return OUTLINES[shape] @ turning.T


def extent(shape: str, turn: int = 0) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a shape."""
    if shape in ROUND:
        return -1.0, -1.0, 1.0, 1.0
    corners = outline(shape, turn)
    (left, top), (right, bottom) = corners.min(0).tolist(), corners.max(0).tolist()
    return left, top, right, bottom


def _inside(points: Points, corners: Points) -> NDArray[np.bool_]:
    """Mask of the points from which a line to the right crosses an odd number of sides."""
    x, y = points[:, 0, None], points[:, 1, None]
    x1, y1 = corners.T
    x2, y2 = np.roll(corners, -1, axis=0).T
    crosses = (y1 > y) != (y2 > y)
    rise = np.where(y2 == y1, 1, y2 - y1)
    return (crosses & (x < (x2 - x1) * (y - y1) / rise + x1)).sum(1) % 2 == 1
