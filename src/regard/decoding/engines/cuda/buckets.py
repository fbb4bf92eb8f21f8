"""Rounding sizes up to a few, so that there are few shapes to record."""

import numpy as np

from regard.decoding.engines.candidates import Numbers

ROOM = 32
"""The steps that there is room for at first, where a target may become longer."""
ALIGNED = 16
"""Lengths are whole multiples of it: the kernels read masks sixteen at a time."""


def up(size: int, step: int = 1) -> int:
    """A multiple of `step`, less than a quarter more than asked for: 1, 2, ... 8, 10, 12, 14, 16, 20, ... times the step."""
    while size > 8 * step:
        step *= 2
    return -(-size // step) * step


def room(steps: int) -> int:
    """Room for so many steps: a power of two times ALIGNED."""
    found = ALIGNED
    while found < steps:
        found *= 2
    return found


def padded(rows: Numbers, count: int) -> Numbers:
    """These rows, and the first of them again as often as there is room: the shape is the same, and nobody listens."""
    return np.concatenate((rows, np.repeat(rows[:1], count - len(rows))))
