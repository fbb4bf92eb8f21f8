"""Lengths that are nearly the same, taken as the same: what a loader puts in order before it cuts batches."""

import numpy as np
from numpy.typing import NDArray


def levels(lengths: NDArray[np.int64], steps: int) -> NDArray[np.int64]:
    """Lengths rounded up by less than one in `steps`, a power of two; those below 2 * `steps` stay as they are."""
    power = np.maximum(np.floor(np.log2(np.maximum(lengths, 1))).astype(np.int64) - int(np.log2(steps)), 0)
    return -(-lengths >> power) << power
