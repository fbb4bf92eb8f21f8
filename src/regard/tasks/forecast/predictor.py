"""Predictor of series: forecasts beyond the end of a table, in original units with intervals, and evaluation on windows."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.axis import Axis, Text
from regard.data.lines import bounds
from regard.data.series.batch import SeriesBatch
from regard.data.series.codec import SeriesCodec, format_place
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesRecord
from regard.data.series.settings import split_names
from regard.data.series.windows import Window, Windows, rolling_span
from regard.decoding.logprobs import UndistributedError
from regard.errors import ConfigError, DataError, DataWarning
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace, unscored_error
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input
from regard.metrics.text import Metrics
from regard.tasks.forecast import data as tables
from regard.tasks.forecast.calibration import LEVELS, interpolate_levels
from regard.tasks.forecast.evaluation import BASELINES, Baselines, evaluate_windows, forecast_batch
from regard.tasks.forecast.explanation import Explanation, explain, write_json
from regard.tasks.forecast.forecasts import Forecasts, SeriesForecast
from regard.tasks.forecast.model import Forecast, Look

PLOTS = (".png", ".pdf", ".svg")


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """Series of a table: one input of a predictor."""

    series: tuple[SeriesRecord, ...]
    where: str

    @property
    def source(self) -> str:
        """Path of the table."""
        return self.where


class ForecastPredictor(ForwardPredictor):
    """An input is the path of a table, or a pandas DataFrame; its answer is the future of every series in it."""

    codec: SeriesCodec
    levels: tuple[float, ...] = (0.1, 0.9)
    """Levels of the quantiles of a forecast."""
    plot: Path | None = None
    """File that the next forecast is plotted to."""
    explain: Path | None = None
    """File that the reasons of the next forecast are written to."""
    backtest: int = 0
    """Rolling origins of an evaluation; 0: every origin that no training has seen."""

    def set_levels(self, value: str) -> None:
        """Set the levels of quantiles: numbers with commas between them."""
        try:
            levels = tuple(sorted({float(level) for level in split_names(value)}))
        except ValueError:
            levels = ()
        if not levels or not all(LEVELS[0] <= level <= LEVELS[-1] for level in levels):
            raise ConfigError(
                f"--levels needs numbers from {LEVELS[0]} to {LEVELS[-1]} with commas between them, such as 0.1,0.5,0.9, "
                f"got {value!r}"
            )
        self.levels = levels

    def set_plot(self, value: str) -> None:
        """Set the file of the plot."""
        from regard import io

        path = Path(value)
        if path.suffix.lower() not in PLOTS:
            raise ConfigError(f"--plot needs a file called NAME{', NAME'.join(PLOTS)}, got {value!r}")
        io.check_target(path)
        self.plot = path

    def set_explain(self, value: str) -> None:
        """Set the file of the explanation."""
        from regard import io

        io.check_target(Path(value))
        self.explain = Path(value)

    def set_backtest(self, value: str) -> None:
        """Set the number of rolling origins."""
        if not value.isdecimal() or not int(value):
            raise ConfigError(f"--backtest needs a number of rolling origins, 1 or more, got {value!r}")
        self.backtest = int(value)

    def parse(self, text: str, number: int) -> SeriesTable:
        """Series of a table."""
        return self.read_input(text)

    def read_input(self, table: Any) -> SeriesTable:
        """Series of a path or of a DataFrame, with the columns of the training data."""
        if isinstance(table, SeriesTable):
            return table
        path = os.fspath(table) if isinstance(table, str | os.PathLike) else table
        records = self.check_records(read_series(path, self.codec.columns, bounds(self.config.data)))
        return SeriesTable(tuple(records), path if isinstance(path, str) else "the DataFrame")

    def check_records(self, records: list[SeriesRecord]) -> list[SeriesRecord]:
        """The records; raise where they have another frequency, or no value at all."""
        for record in records:
            own, trained = record.frequency, self.codec.frequency
            same = own.unit == trained.unit and bool(np.isclose(own.count, trained.count, rtol=1e-6))
            if not same:
                raise DataError(
                    f"{format_place(record)} begins a series with a step of {own}, and the model was trained on a step of "
                    f"{trained}; resample it, or train a model for it"
                )
            if np.isnan(record.target).all():
                raise DataError(
                    f"{format_place(record)} begins a series without a value in {', '.join(record.names.target)}: "
                    "all are missing"
                )
        return records

    def read(self, source: Any, number: int = 1) -> SeriesTable:
        """Series of an input."""
        return (
            self.read_input(source) if is_frame(source) or isinstance(source, SeriesTable) else super().read(source, number)
        )

    def predict(self, inputs: Any, **options: Any) -> Any:
        """Prediction of one table; of several, a list with one for each. A table is a path or a pandas DataFrame."""
        return super().predict(self.read_input(inputs) if is_frame(inputs) else inputs, **options)

    def forecast(self, table: Any, levels: Sequence[float] | None = None) -> Forecasts:
        """Forecasts beyond the end of every series of a path or of a DataFrame, in original units.

        `levels` are those of the quantiles. Covariates that are known ahead need rows after the last target.
        """
        series = self.read_input(table).series
        for record in series:
            self.codec.check_future(record)
        windows = self.codec.encode_all(series).examples
        forecasts: dict[int, SeriesForecast] = {}
        for indices, batch in self.batches(windows):
            forecasts |= zip(indices, self.forecast_windows(batch, tuple(levels or self.levels)), strict=True)
        names = self.codec.columns
        return Forecasts(tuple(forecasts[place] for place in range(len(series))), names.time or "step", names.id)

    def forecast_windows(self, batch: SeriesBatch, levels: tuple[float, ...]) -> list[SeriesForecast]:
        """Forecasts of the windows of a batch, in original units."""
        scaled = forecast_batch(self.model, batch)
        quantiles = interpolate_levels(scaled.quantiles, levels)
        forecasts = []
        for row, window in enumerate(batch.records):
            record = window.record
            point, wide = self.codec.decode(scaled.point[row], record), self.codec.decode(quantiles[row], record)
            times = record.frequency.steps_after(record.times[window.origin - 1].item(), self.codec.horizon)
            forecasts.append(SeriesForecast(record.between(0, window.origin), times, point, wide, levels))
        return forecasts

    def explain_windows(self, windows: Sequence[Window]) -> list[Explanation]:
        """Why each window is forecast as it is: attention by lag and by variable, beside what masking them changes."""
        return [explain(self.model, window, self.codec) for window in windows]

    def outcomes(
        self, inputs: Sequence[Input], *, best: int = 1, align: bool = False, done: frozenset[int] = frozenset(), **_: Any
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The index of each table with its forecasts, or with the error of one whose forecasts are not finite."""
        if best != 1:
            raise ConfigError(f"a forecast has one answer, with quantiles (--levels), got {best} to choose from")
        if (self.plot or self.explain) and len(inputs) > 1:
            raise ConfigError(f"--plot and --explain are for one table, got {len(inputs)}")
        for index, each in enumerate(inputs):
            if index in done:
                yield index, []
                continue
            table = self.read(each)
            forecasts = self.forecast(table)
            if not all(np.isfinite(forecast.quantiles).all() for forecast in forecasts.series):
                yield index, unscored_error()
                continue
            self._write_reasons(table, forecasts)
            yield index, [self._predict(table, forecasts, align)]

    def _predict(self, table: SeriesTable, forecasts: Forecasts, align: bool) -> Prediction:
        weights = None
        if align:
            [window, *_] = self.codec.encode_all(table.series[:1]).examples
            weights = mean_weights(self._infer(window).looks or {})
        pieces = self.codec.pieces(self.codec.encode_all(table.series[:1]).examples[0]) if align else []
        target = forecasts.series[0].to_dict()["time"] if align else []
        text = forecasts.to_csv().rstrip("\n")
        return Prediction(text, 0.0, pieces, target, weights, fields={"series": forecasts.to_dicts()})

    def _infer(self, window: Window) -> Forecast:
        [(_, batch)] = self.batches([window])
        forecast: Forecast = self.infer(batch, weights=True)
        return forecast

    def _write_reasons(self, table: SeriesTable, forecasts: Forecasts) -> None:
        """Write the plot and the explanation that were asked for."""
        if self.plot is None and self.explain is None:
            return
        windows = self.codec.encode_all(table.series).examples
        explanations = self.explain_windows(windows)
        if self.explain is not None:
            write_json(self.explain, explanations, self.codec.names.target)
        if self.plot is not None:
            from regard.tasks.forecast.plot import plot

            plot(self.plot, forecasts, explanations)

    def forward(self, batch: SeriesBatch, weights: bool = False) -> Forecast:
        """Forecast of a batch, and where was looked."""
        forecast: Forecast = self.model(batch.source, weights=weights)
        return forecast

    def scores(self, output: Forecast) -> Float[Tensor, "batch *scores"]:
        """Numbers of a forecast: where one of a window is not finite, it has no answer."""
        return output.parameters

    def decode(self, examples: Sequence[Window], output: Forecast, best: int, align: bool) -> list[list[Prediction]]:
        """One forecast for each window, as CSV."""
        names = self.codec.columns
        parts = self.forecast_windows(self.codec.loader(examples, len(examples)).collate(range(len(examples))), self.levels)
        forecasts = [Forecasts((part,), names.time or "step", names.id) for part in parts]
        return [
            [Prediction(each.to_csv().rstrip("\n"), 0.0, [], [], fields={"series": each.to_dicts()})] for each in forecasts
        ]

    def encode(self, inputs: Sequence[Input]) -> list[Window]:
        """The window after the end of each series of the inputs."""
        series = [record for number, each in enumerate(inputs, 1) for record in self.read(each, number).series]
        windows: list[Window] = self.codec.encode_all(series).examples
        return windows

    def evaluate(self, records: Any, *, beam: int | None = None, **columns: str) -> Metrics:
        """Metrics on a table by its path, on a DataFrame, or on records."""
        if is_frame(records):
            return self.evaluate_records(self.read_input(records).series)
        return super().evaluate(records, beam=beam, **columns)

    def read_table(self, path: str | os.PathLike[str], **columns: str) -> list[SeriesRecord]:
        """Series of a table, with the columns of the training data unless others are named."""
        if unknown := columns.keys() - set(self.config.data.columns):
            raise ConfigError(f"{min(unknown)} is no column of {self.name}; it has {' and '.join(self.config.data.columns)}")
        changes: dict[str, Any] = dict(columns)
        if "target" in changes:
            changes["target"] = split_names(changes["target"])
        named = replace(self.codec.columns, **changes)
        return self.check_records(read_series(os.fspath(path), named, bounds(self.config.data)))

    def evaluate_records(self, prepared: Sequence[SeriesRecord], *, beam: int | None = None) -> Metrics:
        """Metrics on all windows after the rows that were trained on, or on rolling origins."""
        return self.evaluate_examples(self.select_windows(prepared))

    def select_windows(self, records: Sequence[SeriesRecord]) -> Windows:
        """Windows of an evaluation."""
        series = [self.codec.encode(record) for record in records]
        if self.backtest:
            spans = [rolling_span(len(record), self.codec.horizon, self.backtest) for record in records]
            windows = Windows(series, spans)
            self._warn_of_seen(windows)
            return windows
        windows = tables.unseen_windows(series, self.codec)
        if not len(windows):
            longest = max(records, key=len)
            raise DataError(
                f"{format_place(longest)} has {len(longest):,} rows, and no {self.codec.horizon:,} of them are after what "
                "the model was trained on and validated with; give a table that goes on, or --backtest N for the last N "
                "horizons of any table"
            )
        return windows

    def _warn_of_seen(self, windows: Windows) -> None:
        """Warn of windows whose horizons a training has read."""
        seen = 0
        for window in windows:
            extent = self.codec.extents.get(window.record.id)
            seen += extent is not None and bool(window.record.times[window.origin] <= extent.read_until)
        if seen:
            warnings.warn(
                f"{seen:,} of {len(windows):,} windows begin in rows that the model was trained on or validated with: their "
                "errors say little of new ones; lower --backtest, or train on fewer rows (data.split)",
                DataWarning,
                stacklevel=2,
            )

    def evaluate_examples(self, examples: Sequence[Window], *, beam: int | None = None) -> Metrics:
        """Metrics of the model on windows, and of the baselines on the same ones."""
        codec = self.codec
        baselines = Baselines(self.model.linear.read(), codec.season, codec.look_back, codec.horizon)
        errors = evaluate_windows(self.model, examples, baselines, batch_size=self.config.search.select_batch_size())
        stride = examples.spans[0].stride if isinstance(examples, Windows) and examples.spans else codec.horizon
        block = max(1, codec.horizon // stride)
        figures: Metrics = {}
        for method in ("model", *BASELINES):
            for name, figure in errors[method].measure(block).items():
                figures[name if method == "model" else f"{method}.{name}"] = figure
        return figures

    def find_unscored(self, prepared: Sequence[SeriesRecord], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """Indices of the series whose forecasts are not finite, and their errors."""
        errors: dict[int, UndistributedError] = {}
        for indices, batch in self.batches(self.codec.encode_all(prepared).examples):
            finite = self.scores(self.infer(batch)).flatten(1).isfinite().all(1).tolist()
            errors |= {index: unscored_error() for index, whole in zip(indices, finite, strict=True) if not whole}
        return errors

    def trace_parts(self, example: Window, output: Forecast) -> ForwardTrace:
        """Each attention over the steps of the look-back, over patches of them, or between variables."""
        point = self.model.output.point(output.parameters.float(), self._scale(example))[0].double().cpu().numpy()
        values = self.codec.decode(point, example.record)
        looks = output.looks or {}
        axes = {name: self._axis(name, example, values, look) for look in looks.values() for name in (look.query, look.key)}
        attentions = {name: AxisWeights(look.query, look.key, look.weights[0]) for name, look in looks.items()}
        return ForwardTrace(axes, attentions)

    def _scale(self, example: Window) -> Any:
        from regard.tasks.forecast.model import original_scale

        [(_, batch)] = self.batches([example])
        return original_scale(batch.to(next(self.model.parameters()).device).source)

    def _axis(self, name: str, example: Window, values: NDArray[np.float64], look: Look) -> Axis:
        if name == "horizon":
            return self.codec.target_axis(example, values)
        steps = self.codec.axis(example)
        if name == "look-back":
            return steps
        if name == "patches":
            places = np.minimum(np.arange(look.weights.shape[-1]) * self.model.network.stride, len(steps) - 1)
            return replace(steps, times=steps.times[places], values=steps.values[places])
        return Text.of(self.variables[: look.weights.shape[-1]])

    @property
    def variables(self) -> list[str]:
        """Names of the variables of a model: targets, past covariates, and covariates known ahead."""
        return [*self.codec.names.target, *self.codec.past_names, *self.codec.known_names]


def is_frame(table: Any) -> bool:
    """True for a pandas DataFrame, or what looks like one."""
    return hasattr(table, "columns") and hasattr(table, "index") and not isinstance(table, str | os.PathLike)


def mean_weights(looks: Mapping[str, Look]) -> Float[Tensor, "target source"] | None:
    """Weights of the last attention from the horizon to the look-back, the mean of its heads; None without one."""
    weights: Tensor | None = None
    for look in looks.values():
        if (look.query, look.key) == ("horizon", "look-back"):
            weights = look.weights[0].float().mean(0).cpu()
    return weights
