"""Bucketing: lengths that differ little are rounded to one, for loaders that sort by length and for CUDA graphs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # batches of tensors need no NumPy, and benchmarks on a GPU run without it
    import numpy as np
    from numpy.typing import NDArray


def round_lengths(lengths: "NDArray[np.int64]", steps: int) -> "NDArray[np.int64]":
    """Lengths rounded up by less than one in `steps`, a power of two; those below 2 * `steps` stay as they are."""
    import numpy as np

    power = np.maximum(np.floor(np.log2(np.maximum(lengths, 1))).astype(np.int64) - int(np.log2(steps)), 0)
    return -(-lengths >> power) << power


def round_length(length: int, steps: int) -> int:
    """Length of a padded tensor: with 8 steps 4, 8, ... 32, 40, ... 64, 80, ..., with 4 steps 4, 8, 12, 16, 24, 32, 48, ...

    It grows by less than 2 in `steps`, or to a multiple of 4.
    """
    multiple = 4
    while length > steps * multiple:
        multiple *= 2
    return -(-length // multiple) * multiple
