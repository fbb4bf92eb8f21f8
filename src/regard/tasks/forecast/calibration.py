"""Conformal calibration: quantiles of a forecast are shifted by what they missed on the validation rows.

    q'_τ = q_τ + the ⌈(n + 1) τ⌉-th smallest of y - q_τ        of n validation windows, for each step and target

Split conformal prediction, one-sided at each level (Romano et al. 2019, https://arxiv.org/abs/1905.03222, theorem 2): if
later windows are like the validation windows, at least a share τ of values lies below q'_τ. Windows of a series are not
exchangeable, so that the share is measured on test rows and printed. A model of points has the point at every level, so that
its interval is one of its validation errors.
"""

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

LEVELS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975)
"""Levels that are calibrated; quantiles at levels between them are interpolated."""
SCORED = tuple(range(LEVELS.index(0.1), LEVELS.index(0.9) + 1))
"""Places of the levels 0.1 to 0.9, of which CRPS and SQL are the mean."""
MOST_WINDOWS = 256
"""Most validation windows that calibrate: evenly spread, since windows that overlap say the same."""

Array = NDArray[np.float64]


class Calibration(nn.Module):
    """Shift of each quantile, by level, step and target, in scaled units; all 0 before a calibration."""

    shift: Tensor

    def __init__(self, horizon: int, targets: int):
        super().__init__()
        self.register_buffer("shift", torch.zeros(len(LEVELS), horizon, targets))

    def set(self, shift: Float[np.ndarray, "levels horizon targets"]) -> None:
        """Take over a shift that was measured."""
        self.shift.copy_(torch.from_numpy(shift))

    def apply_to(self, quantiles: Float[np.ndarray, "windows horizon targets levels"]) -> Array:
        """Quantiles at LEVELS with the shift, in ascending order."""
        return add_shift(quantiles, self.shift.double().cpu().numpy())


def add_shift(quantiles: Array, shift: Array) -> Array:
    """Quantiles with a shift, in ascending order."""
    shifted: Array = np.sort(quantiles + np.moveaxis(shift, 0, -1), -1)
    return shifted


def measure_shift(quantiles: Array, truth: Array, observed: NDArray[np.bool_]) -> Array:
    """Conformal shift of quantiles (windows, horizon, targets, levels), as (levels, horizon, targets).

    0 for a step and target that no window has observed.
    """
    counts = observed.sum(0)
    shifts = []
    errors, last = np.empty(0), None
    for place, level in enumerate(LEVELS):
        column = quantiles[..., place]
        if last is None or not np.array_equal(column, last):  # the levels of a point forecast are all the same
            errors = np.sort(np.where(observed, truth - column, np.inf), 0)
            last = column
        rank = np.ceil((counts + 1) * level) if level >= 0.5 else np.floor((counts + 1) * level)
        row = np.clip(rank, 1, np.maximum(counts, 1)).astype(np.int64) - 1
        chosen = np.take_along_axis(errors, row[None], 0)[0]
        shifts.append(np.where(counts > 0, chosen, 0.0))
    return np.stack(shifts)


def interpolate_levels(quantiles: Array, levels: tuple[float, ...]) -> Array:
    """Quantiles at other levels, linearly between those of LEVELS, as (..., levels)."""
    own = np.array(LEVELS)
    columns = []
    for level in levels:
        right = int(np.clip(np.searchsorted(own, level), 1, len(own) - 1))
        share = (level - own[right - 1]) / (own[right] - own[right - 1])
        columns.append((1 - share) * quantiles[..., right - 1] + share * quantiles[..., right])
    return np.stack(columns, -1)
