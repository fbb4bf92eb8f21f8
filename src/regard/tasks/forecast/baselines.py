"""Baselines of a forecast: repeat-last and seasonal-naive, which need no training; they are always in the table."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

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
