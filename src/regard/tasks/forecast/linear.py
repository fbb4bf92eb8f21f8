"""Linear baseline: ridge regression of the horizon on the look-back in closed form, one map for all targets and series.

    ŷ - x_last = W (x - x_last)        W = argmin ‖Y - W X‖² + λ ‖W‖²

Zeng et al. 2023, section 3.3, https://arxiv.org/abs/2205.13504 (NLinear, there by gradient descent); the solution in closed
form is that of Toner and Darlow 2024, https://arxiv.org/abs/2403.14587. It trains in seconds, and it is in every table.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.series.windows import Windows

RIDGE = 0.1
"""Strength of the ridge, as a share of the mean diagonal of the Gram matrix."""
MOST_WINDOWS = 100_000
"""Most windows and targets that a fit reads, evenly spread over the training rows."""

Matrix = NDArray[Any]


class LinearMap(NamedTuple):
    """Map from a look-back to a horizon, and the deviation of its errors at each step and target."""

    weight: Matrix
    """(horizon, look-back)."""
    deviation: Matrix
    """(horizon, targets)."""


class Pairs(NamedTuple):
    """Look-backs less their last value, horizons less that value, and which values of the horizon were observed."""

    inputs: Matrix
    """(windows, targets, look-back)."""
    outputs: Matrix
    """(windows, targets, horizon)."""
    observed: NDArray[np.bool_]


def fit_linear(windows: Windows, look_back: int, horizon: int) -> LinearMap:
    """Ridge regression on training windows, in which missing values count as the last observed one."""
    pairs = gather_pairs(windows, look_back, horizon, MOST_WINDOWS)
    whole = pairs.observed.all(2)
    inputs, outputs = pairs.inputs[whole], pairs.outputs[whole]
    if not len(inputs):  # every window has a gap: those count as the last value
        inputs, outputs = pairs.inputs.reshape(-1, look_back), pairs.outputs.reshape(-1, horizon)
    gram = (inputs.T @ inputs).astype(np.float64)
    gram[np.diag_indices(look_back)] += RIDGE * max(float(np.trace(gram)) / look_back, 1e-12)
    weight = np.linalg.solve(gram, (inputs.T @ outputs).astype(np.float64)).T
    errors = np.where(pairs.observed, pairs.outputs - pairs.inputs @ weight.T.astype(np.float32), 0.0)
    counts = np.maximum(pairs.observed.sum(0), 1)
    return LinearMap(weight, np.sqrt((errors**2).sum(0) / counts).T.astype(np.float64))


def measure_linear(linear: LinearMap, windows: Windows, look_back: int, horizon: int) -> float:
    """Mean squared error of a linear map on windows."""
    pairs = gather_pairs(windows, look_back, horizon, MOST_WINDOWS)
    errors = (pairs.outputs - pairs.inputs @ linear.weight.T.astype(np.float32)) ** 2
    return float(errors[pairs.observed].mean()) if pairs.observed.any() else float("nan")


def gather_pairs(windows: Windows, look_back: int, horizon: int, most: int) -> Pairs:
    """Inputs and outputs of at most so many windows and targets."""
    targets = windows.series[0].data.shape[1]
    stride = max(1, -(-len(windows) * targets // most))
    parts = [
        _of_series(series.data, series.observed, range(span.first, span.last + 1, span.stride * stride), look_back, horizon)
        for series, span in zip(windows.series, windows.spans, strict=True)
        if span.origins
    ]
    return Pairs(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _of_series(
    data: NDArray[np.float32], observed: NDArray[np.bool_], origins: Sequence[int], look_back: int, horizon: int
) -> Pairs:
    filled = fill_forward(data, observed)
    before = np.repeat(filled[:1], look_back, 0)
    padded = np.concatenate((before, filled))
    starts = np.asarray(origins)
    inputs = np.lib.stride_tricks.sliding_window_view(padded, look_back, 0)[starts]
    ahead = np.lib.stride_tricks.sliding_window_view(data, horizon, 0)[starts]
    present = np.lib.stride_tricks.sliding_window_view(observed, horizon, 0)[starts]
    last = inputs[..., -1:]
    return Pairs(inputs - last, np.where(present, ahead - last, 0.0), present)


def fill_forward(values: Matrix, observed: NDArray[np.bool_]) -> Matrix:
    """Values in which a missing one is the last observed one before it; 0, the mean, before the first."""
    places = np.maximum.accumulate(np.where(observed, np.arange(len(values))[:, None], -1), 0)
    filled: Matrix = np.where(places >= 0, np.take_along_axis(values, np.maximum(places, 0), 0), 0.0)
    return filled


def choose_look_back(
    candidates: Sequence[int], train: Sequence[Windows], valid: Sequence[Windows], horizon: int
) -> tuple[int, list[float]]:
    """The candidate whose linear forecast has the lowest error on the validation windows, and all errors."""
    errors = [
        measure_linear(fit_linear(first, look_back, horizon), second, look_back, horizon)
        for look_back, first, second in zip(candidates, train, valid, strict=True)
    ]
    return candidates[int(np.argmin(errors))], errors
