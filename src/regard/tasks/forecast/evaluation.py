"""Evaluation of a forecaster on windows, beside repeat-last, seasonal-naive and linear forecasts of the same windows.

Errors are summed up window by window, so that no figure depends on the size of a batch and memory does not grow with theirs.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.series.batch import SeriesBatch
from regard.data.series.windows import EncodedSeries, SeriesLoader, Window, Windows
from regard.metrics import forecast as metrics
from regard.metrics.text import Measurement
from regard.tasks.forecast.baselines import naive_quantiles, repeat_last, seasonal_naive
from regard.tasks.forecast.calibration import LEVELS, MOST_WINDOWS, SCORED, add_shift, measure_shift
from regard.tasks.forecast.linear import LinearMap, fill_forward
from regard.tasks.forecast.model import Forecaster, original_scale

Array = NDArray[np.float64]
RECENT = 1024
"""Steps before an origin whose errors are the deviation of a naive forecast: with so many, fev-bench's figure of its
seasonal-naive baseline is that of docs/results.md."""
BASELINES = ("linear", "seasonal-naive", "repeat-last")
QUANTILE_METRICS = ("pinball", "crps", "sql", "coverage80", "coverage95")
MEANINGS = {
    "loss": "training loss of a value",
    "mse": "mean squared error, scaled by the training rows",
    "mae": "mean absolute error, scaled by the training rows",
    "mase": "absolute error over the in-sample error of the seasonal-naive forecast",
    "smape": "symmetric absolute percentage error, 0 to 200",
    "pinball": "pinball loss, the mean of the levels 0.1 to 0.9, scaled",
    "crps": "twice the pinball loss, scaled",
    "sql": "twice the pinball loss over the in-sample error of the seasonal-naive forecast",
    "coverage80": "share of values inside the interval of 80 %",
    "coverage95": "share of values inside the interval of 95 %",
}


class ScaledForecast(NamedTuple):
    """Forecast of windows in scaled units: points, and quantiles at LEVELS."""

    point: Array
    """(windows, horizon, targets)."""
    quantiles: Array
    """(windows, horizon, targets, levels)."""
    losses: Array | None = None
    """Loss of each value, of a model whose windows have horizons."""


def forecast_batch(model: Forecaster, batch: SeriesBatch, calibrated: bool = True) -> ScaledForecast:
    """Forecast of a batch, in scaled units; a model of points has its point at every level before calibration."""
    moved = batch.to(next(model.parameters()).device)
    with torch.no_grad():
        parameters = model(moved.source).parameters.float()
    scale = original_scale(moved.source)
    point = model.output.point(parameters, scale).double().cpu().numpy()
    quantiles = model.output.quantiles(parameters, LEVELS, scale)
    levels = np.repeat(point[..., None], len(LEVELS), -1) if quantiles is None else quantiles.double().cpu().numpy()
    losses = None
    if moved.target is not None:
        losses = model.output.losses(parameters, moved.target.data, scale).double().cpu().numpy()
    return ScaledForecast(point, model.calibration.apply_to(levels) if calibrated else levels, losses)


class Truth(NamedTuple):
    """Values of the horizons of windows, and what scales their errors."""

    data: Array
    observed: NDArray[np.bool_]
    seasonal_error: Array
    """(windows, targets), in scaled units."""
    mean: Array
    scale: Array


class WindowErrors:
    """Sum and count of each metric, for each window, of one forecaster."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Array]] = {}

    def add(self, forecast: ScaledForecast, truth: Truth, quantile_rows: NDArray[np.bool_]) -> None:
        """Add the errors of a batch; those of quantiles count in `quantile_rows` alone."""
        for name, (errors, counted) in window_errors(forecast, truth, quantile_rows).items():
            counted = counted & ~np.isnan(errors)
            sums = np.where(counted, errors, 0.0).reshape(len(errors), -1).sum(1)
            self.rows.setdefault(name, []).append(np.stack((sums, counted.reshape(len(errors), -1).sum(1)), 1))

    def measure(self, block: int) -> dict[str, Measurement]:
        """Metrics with their intervals, by a bootstrap over blocks of so many consecutive windows."""
        return {name: metrics.measure_rows(np.concatenate(rows), MEANINGS[name], block) for name, rows in self.rows.items()}

    def means(self) -> dict[str, float]:
        """Metrics alone."""
        totals = {name: np.concatenate(rows).sum(0) for name, rows in self.rows.items()}
        return {name: float(total / count) if count else float("nan") for name, (total, count) in totals.items()}


def window_errors(
    forecast: ScaledForecast, truth: Truth, quantile_rows: NDArray[np.bool_]
) -> Mapping[str, tuple[Array, NDArray[np.bool_]]]:
    """Errors of each value by metric, and the values that count."""
    absolute = metrics.absolute_errors(forecast.point, truth.data)
    quantiles = forecast.quantiles
    pinball = metrics.pinball_losses(quantiles[..., SCORED], truth.data, [LEVELS[place] for place in SCORED]).mean(-1)
    mean, scale = truth.mean[:, None], truth.scale[:, None]
    seen, judged = truth.observed, truth.observed & quantile_rows[:, None, None]
    inside = {
        share: (truth.data >= quantiles[..., LEVELS.index(low)]) & (truth.data <= quantiles[..., LEVELS.index(high)])
        for share, low, high in ((80, 0.1, 0.9), (95, 0.025, 0.975))
    }
    losses = {} if forecast.losses is None else {"loss": (forecast.losses, seen)}
    return losses | {
        "mse": (absolute**2, seen),
        "mae": (absolute, seen),
        "mase": (metrics.scale_errors(absolute, truth.seasonal_error), seen),
        "smape": (
            metrics.symmetric_percentage_errors(forecast.point * scale + mean, truth.data * scale + mean),
            seen,
        ),
        "pinball": (pinball, judged),
        "crps": (2 * pinball, judged),
        "sql": (metrics.scale_errors(2 * pinball, truth.seasonal_error), judged),
        "coverage80": (inside[80].astype(np.float64), judged),
        "coverage95": (inside[95].astype(np.float64), judged),
    }


class InSample(NamedTuple):
    """Sums of the in-sample errors of a naive forecast up to each step, and their numbers."""

    absolute: Array
    squared: Array
    counts: NDArray[np.int64]

    @classmethod
    def measure(cls, values: Array, season: int) -> "InSample":
        """Errors of the forecast that each value is that of a season before."""
        errors = np.abs(values[season:] - values[:-season])
        present = ~np.isnan(errors)
        errors = np.where(present, errors, 0.0)
        return cls(np.cumsum(errors, 0), np.cumsum(errors**2, 0), np.cumsum(present, 0))

    def mean(self, sums: Array, last: int) -> Array:
        """Mean of the errors up to one of them; NaN without any."""
        if last < 0:
            return np.full(sums.shape[1], np.nan)
        counts = self.counts[last]
        return np.divide(sums[last], counts, out=np.full(sums.shape[1], np.nan), where=counts > 0)


class History:
    """History of a series at each origin, for naive forecasts and scaled metrics."""

    def __init__(self, series: EncodedSeries, season: int):
        self.season = season
        self.values = np.where(series.observed, series.data.astype(np.float64), np.nan)
        self.filled = fill_forward(series.data.astype(np.float64), series.observed)
        self.in_sample = {steps: InSample.measure(self.values, steps) for steps in {season, 1}}

    def seasonal_error(self, origin: int) -> Array:
        """In-sample error of the seasonal-naive forecast of the steps before an origin, for each target; NaN for 0."""
        errors = self.in_sample[self.season]
        means = errors.mean(errors.absolute, origin - self.season - 1)
        return np.where(means > 0, means, np.nan)

    def deviation(self, origin: int, season: int) -> Array:
        """Root mean squared in-sample error of a naive forecast in the last steps; 0 where there is none."""
        errors, last = self.in_sample[season], origin - season - 1
        if last < 0:
            return np.zeros(self.values.shape[1])
        total, count = errors.squared[last], errors.counts[last]
        if (before := origin - RECENT - 1) >= 0 and season < RECENT:
            total, count = total - errors.squared[before], count - errors.counts[before]
        return np.sqrt(np.maximum(total, 0) / np.maximum(count, 1))


class Baselines:
    """Forecasts of the baselines for windows, in scaled units."""

    def __init__(self, linear: LinearMap, season: int, look_back: int, horizon: int):
        self.linear, self.season, self.look_back, self.horizon = linear, season, look_back, horizon
        self.standard = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.float64)).tolist()
        self.history: Callable[[EncodedSeries], History] = cache(lambda series: History(series, season))

    def forecast(self, name: str, windows: Sequence[Window]) -> ScaledForecast:
        """Forecasts of one baseline."""
        forecasts = [self._one(name, self.history(window.series), window.origin) for window in windows]
        points, quantiles = zip(*forecasts, strict=True)
        return ScaledForecast(np.stack(points), np.stack(quantiles))

    def _one(self, name: str, history: History, origin: int) -> tuple[Array, Array]:
        if name == "linear":
            return self._linear(history, origin)
        season = self.season if name == "seasonal-naive" else 1
        known = history.values[:origin]
        point = seasonal_naive(known, self.horizon, season) if season > 1 else repeat_last(known, self.horizon)
        point = np.nan_to_num(point, nan=0.0)
        return point, naive_quantiles(point, history.deviation(origin, season), season, self.standard)

    def _linear(self, history: History, origin: int) -> tuple[Array, Array]:
        steps = self.linear.weight.shape[1]
        known = history.filled[max(0, origin - steps) : origin]
        known = np.concatenate((np.repeat(known[:1], steps - len(known), 0), known))
        point = self.linear.weight @ (known - known[-1]) + known[-1]
        return point, point[..., None] + self.linear.deviation[..., None] * np.array(self.standard)

    def read_truth(self, batch: SeriesBatch) -> Truth:
        """Values of the horizons of a batch."""
        assert batch.target is not None, "windows of an evaluation have horizons"
        assert batch.observed is not None, "a target has a mask"
        errors = [self.history(window.series).seasonal_error(window.origin) for window in batch.records]
        mean, scale = batch.source.mean.double().numpy(), batch.source.scale.double().numpy()
        return Truth(batch.target.data.double().numpy(), batch.observed.numpy(), np.stack(errors), mean, scale)


def calibrate(model: Forecaster, windows: Sequence[Window], look_back: int, horizon: int, batch_size: int) -> Array:
    """Conformal shift of a model's quantiles, measured on at most MOST_WINDOWS windows."""
    places = np.unique(np.linspace(0, len(windows) - 1, min(len(windows), MOST_WINDOWS)).round().astype(int))
    chosen = [windows[int(place)] for place in places]
    quantiles, truth, observed = [], [], []
    for _, batch in SeriesLoader(chosen, look_back, horizon, batch_size=batch_size, shuffle=False).in_order():
        quantiles.append(forecast_batch(model, batch, calibrated=False).quantiles)
        truth.append(batch.target.data.double().numpy())
        observed.append(batch.observed.numpy())
    return measure_shift(np.concatenate(quantiles), np.concatenate(truth), np.concatenate(observed))


def evaluate_windows(
    model: Forecaster,
    windows: Sequence[Window],
    baselines: Baselines,
    *,
    batch_size: int,
    names: Sequence[str] = BASELINES,
    shift: Array | None = None,
    quantile_windows: NDArray[np.bool_] | None = None,
) -> dict[str, WindowErrors]:
    """Errors of the model, called "model", and of the baselines named. `shift` replaces that of the model's calibration."""
    errors = {name: WindowErrors() for name in ("model", *names)}
    loader = SeriesLoader(windows, baselines.look_back, baselines.horizon, batch_size=batch_size, shuffle=False)
    judged = np.ones(len(windows), bool) if quantile_windows is None else quantile_windows
    for indices, batch in loader.in_order():
        truth, rows = baselines.read_truth(batch), judged[indices]
        forecast = forecast_batch(model, batch, calibrated=shift is None)
        if shift is not None:
            forecast = forecast._replace(quantiles=add_shift(forecast.quantiles, shift))
        errors["model"].add(forecast, truth, rows)
        for name in names:
            errors[name].add(baselines.forecast(name, batch.records), truth, rows)
    return errors


def select_later_half(windows: Windows) -> NDArray[np.bool_]:
    """True for the windows of the later half of each series' origins; for all where a half has none."""
    later = np.concatenate([np.arange(span.origins) >= span.origins // 2 for span in windows.spans])
    return later if later.any() and not later.all() else np.ones(len(windows), bool)
