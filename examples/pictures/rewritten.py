"""Strokes as somebody might have written them another time: larger or smaller, slanted, bent, and each a little aside.

Changing strokes rather than pictures keeps lines as sharp as they are where nothing was changed, which is what a model meets
later.
"""

import numpy as np
from numpy.typing import NDArray

Paths = list[NDArray[np.float64]]

SCALE, STRETCH = 0.2, 0.15
"""The size of all, and of its width alone: up to a factor of 1 + so much either way."""
TURN, SLANT = 4.0, 12.0
"""Degrees, either way."""
WAVES, BEND, SHORTEST, LONGEST = 6, 2.0, 30.0, 200.0
"""Waves that bend the page, the deviation in pixels that they come to, and their lengths."""
ASIDE, TILT, GROW = 0.8, 3.0, 0.06
"""What each stroke does by itself: deviations in pixels, in degrees and as a share of its size."""
LONG = 30.0
"""Pixels from which on a stroke tilts and grows the less the longer it is: a bar should not cross what stands above it."""


def rewritten(paths: Paths, chance: np.random.Generator) -> Paths:
    """Paths in pixels, and others that say the same."""
    moved = [alone(path, chance) for path in paths]
    matrix, bend = page(chance), Waves(chance)
    return [bend(path @ matrix.T) for path in moved]


def alone(path: NDArray[np.float64], chance: np.random.Generator) -> NDArray[np.float64]:
    """One stroke, turned and scaled about its own middle, and put down a little aside."""
    low, high = path.min(0), path.max(0)
    calm = min(1.0, LONG / max(float((high - low).max()), 1.0))
    middle, angle = (low + high) / 2, np.radians(chance.normal(0, TILT * calm))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (path - middle) * np.exp(chance.normal(0, GROW * calm, 2)) @ turn.T + middle + chance.normal(0, ASIDE, 2)


def page(chance: np.random.Generator) -> NDArray[np.float64]:
    """A matrix for all strokes together."""
    both, wide, turn, slant = chance.uniform(-1, 1, 4)
    angle, lean = np.radians(TURN * turn), np.tan(np.radians(SLANT * slant))
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    size = (1 + SCALE) ** both
    return rotation @ np.array([[1.0, lean], [0.0, 1.0]]) @ np.diag([size * (1 + STRETCH) ** wide, size])


class Waves:
    """A page that is bent: each place goes a little aside, and places near each other go alike."""

    def __init__(self, chance: np.random.Generator):
        length, way = np.exp(chance.uniform(np.log(SHORTEST), np.log(LONGEST), WAVES)), chance.uniform(0, 2 * np.pi, WAVES)
        self.ripple = 2 * np.pi / length * np.stack((np.cos(way), np.sin(way)))
        self.begin = chance.uniform(0, 2 * np.pi, WAVES)
        self.height = chance.normal(0, BEND * np.sqrt(2 / WAVES), (WAVES, 2))

    def __call__(self, path: NDArray[np.float64]) -> NDArray[np.float64]:
        return path + np.sin(path @ self.ripple + self.begin) @ self.height
