"""Baselines of a forecast: repeat-last and seasonal-naive, which need no training; they are always in the table."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from regard.data.series.calendar import Frequency
from regard.data.series.records import Values


def repeat_last(history: Values, horizon: int) -> Values:
    """The last observed value of each column, at every step; NaN where none was observed."""
    return np.repeat(_last_observed(history)[None], horizon, 0)


def seasonal_naive(history: Values, horizon: int, season: int) -> Values:
    """The value one season before each step, in the last season of the history; missing ones by an earlier season."""
    if len(history) < season:
        return repeat_last(history, horizon)
    last = np.full((season, history.shape[1]), np.nan)
    for start in range(len(history) - season, -season, -season):
        part = history[max(0, start) : start + season]
        empty = np.isnan(last[season - len(part) :])
        last[season - len(part) :][empty] = part[empty]
        if not np.isnan(last).any():
            break
    missing = np.isnan(last)
    last[missing] = np.broadcast_to(_last_observed(history), last.shape)[missing]
    return last[np.arange(horizon) % season]


def choose_season(frequency: Frequency, history: int) -> int:
    """Season of a frequency: its shortest natural cycle that the history holds twice; 1, so repeat-last, where none is."""
    return next((season for season in frequency.seasons if 2 * season <= history), 1)


def naive_deviation(history: Values, season: int) -> NDArray[np.float64]:
    """Root mean squared in-sample error of the seasonal-naive forecast of each column."""
    errors = (history[season:] - history[:-season]) ** 2
    present = ~np.isnan(errors)
    counts = np.maximum(present.sum(0), 1)
    deviation: NDArray[np.float64] = np.sqrt(np.where(present, errors, 0).sum(0) / counts)
    return deviation


def naive_quantiles(point: Values, deviation: NDArray[np.float64], season: int, standard: list[float]) -> Values:
    """Quantiles of a naive forecast, as (steps, columns, levels): its errors are a random walk over seasons.

    y_{t+h} ~ Normal(point, deviation² · (⌊(h - 1) / season⌋ + 1))        Hyndman and Athanasopoulos 2021, section 5.5
    `standard` are the quantiles of the standard normal distribution.
    """
    walk = np.sqrt(np.arange(len(point)) // season + 1)
    return point[..., None] + (walk[:, None] * deviation)[..., None] * np.array(standard)


def _last_observed(history: Values) -> NDArray[np.float64]:
    return np.array([next(_backwards(column), np.nan) for column in history.T], np.float64)


def _backwards(column: NDArray[np.float64]) -> Iterator[float]:
    return (float(value) for value in column[::-1] if not np.isnan(value))
