"""Size buckets: rounds sizes up, so that there are few shapes to capture as CUDA graphs."""

import numpy as np

from regard.decoding.engines.types import Numbers

INITIAL_STEPS = 32
"""Initial number of steps with buffers, where a target may become longer."""
ALIGNED = 16
"""Alignment of lengths: the kernels read masks sixteen at a time."""


def round_up(size: int, step: int = 1) -> int:
    """Round up to a multiple of `step`, by less than a quarter: 1, 2, ... 8, 10, 12, 14, 16, 20, ... times the step."""
    while size > 8 * step:
        step *= 2
    return -(-size // step) * step


def round_up_steps(steps: int) -> int:
    """Round a number of steps up to a power of two times ALIGNED."""
    bucket = ALIGNED
    while bucket < steps:
        bucket *= 2
    return bucket


def pad_rows(rows: Numbers, count: int) -> Numbers:
    """Pad rows to a fixed count by repeating the first; results of the padding are ignored."""
    return np.concatenate((rows, np.repeat(rows[:1], count - len(rows))))
