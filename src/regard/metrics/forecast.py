"""Metrics of forecasts: MSE, MAE, MASE, sMAPE, pinball loss, CRPS, scaled quantile loss, coverage, and their intervals.

Arrays are (windows, horizon, targets), with one more dimension of levels for quantiles; only observed values count, and a
mean is over all of them alike, so that the size of a batch changes no figure. A scaled error is divided by the in-sample
error of the seasonal-naive forecast.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.metrics.text import Measurement

Values = NDArray[Any]
Observed = NDArray[np.bool_]
Errors = NDArray[np.float64]


def squared_errors(forecast: Values, truth: Values) -> Errors:
    """Squared error of each value: their mean is the MSE."""
    errors: Errors = (np.asarray(forecast, np.float64) - truth) ** 2
    return errors


def absolute_errors(forecast: Values, truth: Values) -> Errors:
    """Absolute error of each value: their mean is the MAE."""
    errors: Errors = np.abs(np.asarray(forecast, np.float64) - truth)
    return errors


def symmetric_percentage_errors(forecast: Values, truth: Values) -> Errors:
    """sMAPE of each value in per cent, from 0 to 200: 200 |y - f| / (|y| + |f|), and 0 where both are 0.

    Makridakis 1993, https://doi.org/10.1016/0169-2070(93)90079-3, with the absolute values that M4 added.
    """
    sizes = np.abs(np.asarray(forecast, np.float64)) + np.abs(truth)
    errors: Errors = 200 * np.divide(absolute_errors(forecast, truth), sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return errors


def pinball_losses(quantiles: Values, truth: Values, levels: Sequence[float]) -> Errors:
    """Pinball (quantile) loss of each value and level:  τ (y - q) where y ≥ q, else (1 - τ) (q - y).

    Koenker and Bassett 1978, https://doi.org/10.2307/1913643, equation 3.3.
    """
    if quantiles.shape[-1] != len(levels):
        raise ValueError(f"pinball losses need a quantile for each of {len(levels)} levels, got {quantiles.shape[-1]}")
    excess = np.asarray(truth, np.float64)[..., None] - quantiles
    losses: Errors = np.maximum(excess * np.asarray(levels), excess * (np.asarray(levels) - 1))
    return losses


def quantile_crps(quantiles: Values, truth: Values, levels: Sequence[float]) -> Errors:
    """CRPS of each value from quantiles: twice the mean pinball loss.

        CRPS(F, y) = 2 ∫ pinball_τ(F⁻¹(τ), y) dτ ≈ 2 mean_τ pinball_τ(q_τ, y)       for levels that are equally spaced

    Gneiting and Ranjan 2011, https://doi.org/10.1198/jbes.2010.08110, equations 7 and 8.
    """
    losses: Errors = 2 * pinball_losses(quantiles, truth, levels).mean(-1)
    return losses


def normal_crps(mean: Values, deviation: Values, truth: Values) -> Errors:
    """CRPS of each value under a normal distribution, in closed form.

        CRPS = σ (z (2 Φ(z) - 1) + 2 φ(z) - 1 / √π)        z = (y - μ) / σ

    Gneiting et al. 2005, https://doi.org/10.1175/MWR2904.1, equation 5.
    """
    z = (np.asarray(truth, np.float64) - mean) / deviation
    cumulative = 0.5 * (1 + _erf(z / np.sqrt(2)))
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    losses: Errors = deviation * (z * (2 * cumulative - 1) + 2 * density - 1 / np.sqrt(np.pi))
    return losses


def sample_crps(samples: Values, truth: Values) -> Errors:
    """CRPS of each value under the empirical distribution of samples, which are the last dimension.

        CRPS = E|X - y| - E|X - X'| / 2

    Gneiting and Raftery 2007, https://doi.org/10.1198/016214506000001437, equation 21.
    """
    ordered = np.sort(np.asarray(samples, np.float64), axis=-1)
    count = ordered.shape[-1]
    ranks = 2 * np.arange(1, count + 1) - count - 1
    spread = (ordered * ranks).sum(-1) / count**2  # E|X - X'| / 2, of sorted samples
    losses: Errors = np.abs(ordered - np.asarray(truth)[..., None]).mean(-1) - spread
    return losses


def seasonal_error(history: Values, season: int, observed: Observed | None = None) -> Errors:
    """Mean absolute in-sample error of the seasonal-naive forecast, for each column of (time, targets).

        mean_t |y_t - y_{t - season}|

    NaN where no such pair was observed, and where all pairs are equal: nothing can be scaled by an error of 0.
    """
    if season < 1:
        raise ValueError(f"a season has at least one step, got {season}")
    values = np.asarray(history, np.float64)
    present = ~np.isnan(values) if observed is None else observed & ~np.isnan(values)
    both = present[season:] & present[:-season]
    errors = np.where(both, np.abs(values[season:] - values[:-season]), 0).sum(0)
    counts = both.sum(0)
    means = np.divide(errors, counts, out=np.full(values.shape[1:], np.nan), where=counts > 0)
    scales: Errors = np.where(means > 0, means, np.nan)
    return scales


def scale_errors(errors: Errors, scale: Errors) -> Errors:
    """Errors of each window over the in-sample error of its series: (windows, horizon, targets) by (windows, targets).

    Absolute errors become MASE (Hyndman and Koehler 2006, https://doi.org/10.1016/j.ijforecast.2006.03.001), and the CRPS
    of quantiles becomes the scaled quantile loss (SQL). Values whose scale is NaN come out as NaN, and count for nothing.
    """
    scaled: Errors = errors / scale[:, None, :]
    return scaled


def mean_error(errors: Errors, observed: Observed) -> float:
    """Mean over all observed values; NaN errors count for nothing."""
    counted = observed & ~np.isnan(errors)
    return float(errors[counted].mean()) if counted.any() else float("nan")


def coverage(low: Values, high: Values, truth: Values, observed: Observed) -> float:
    """Share of the observed values that are inside their interval."""
    inside = (np.asarray(truth) >= low) & (np.asarray(truth) <= high)
    return float(inside[observed].mean()) if observed.any() else float("nan")


def measure_windows(errors: Errors, observed: Observed, name: str, block: int = 1, seed: int = 0) -> Measurement:
    """Mean error with its 95 % interval, by a bootstrap over blocks of consecutive windows.

    Windows that overlap have errors that go together: `block` is the number of windows that one covers, at stride 1 its
    look-ahead (Künsch 1989, https://doi.org/10.1214/aos/1176347265).
    """
    counted = observed & ~np.isnan(errors)
    sums = np.where(counted, errors, 0).reshape(len(errors), -1).sum(1)
    return measure_rows(np.stack((sums, counted.reshape(len(errors), -1).sum(1)), 1), name, block, seed)


def measure_rows(rows: NDArray[np.float64], name: str, block: int = 1, seed: int = 0) -> Measurement:
    """Mean with its interval from (windows, 2): the sum of the errors of each window, and the number of its values."""
    total, count = rows.sum(0)
    if not count:
        return Measurement(float("nan"), float("nan"), float("nan"), f"{name}|blocks:{block}")
    low, high = _block_bootstrap(rows, block, seed)
    return Measurement(float(total / count), low, high, f"{name}|blocks:{block}")


def _block_bootstrap(rows: NDArray[np.float64], block: int, seed: int, resamples: int = 1000) -> tuple[float, float]:
    """Interval of the ratio of two sums over windows."""
    size = min(max(1, block), len(rows))
    totals = np.concatenate((np.zeros((1, 2)), np.cumsum(rows, 0)))
    of_block = totals[size:] - totals[:-size]
    generator = np.random.default_rng(seed)
    chosen = generator.integers(len(of_block), size=(resamples, -(-len(rows) // size)))
    sums = of_block[chosen].sum(1)
    ratios = sums[:, 0] / np.maximum(sums[:, 1], 1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


_erf: Callable[[Values], Errors] = np.vectorize(math.erf, otypes=[np.float64])
