"""Predictor of anomaly detection: scores and alarms of series, metrics on labelled ones, and a trace of the worst window."""

import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.axis import Axis, Index, Series
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesRecord
from regard.data.series.settings import split_names
from regard.data.series.windows import EncodedSeries
from regard.decoding.logprobs import UndistributedError
from regard.errors import ConfigError, DataError
from regard.inference.forward_predictor import WRITING, AxisWeights, ForwardTrace
from regard.inference.forward_trace import build_example
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input, Predictor, split_inputs
from regard.metrics.anomaly import suggest_window
from regard.metrics.text import Metrics
from regard.tasks.anomaly.baselines import draw_scores
from regard.tasks.anomaly.config import AnomalyConfig
from regard.tasks.anomaly.evaluation import Labelled, Scored, compare, to_metrics
from regard.tasks.anomaly.model import Detector
from regard.tasks.anomaly.scoring import Postprocess, Rows, Scorer, Scores, collate, format_steps
from regard.tasks.anomaly.stream import stream_table
from regard.viewer.record import record as record_network
from regard.viewer.trace import Example, Graph, Trace

AXES = {"latents": ("latents", "patches"), "decoder": ("patches", "latents"), "memory": ("window", "memory")}
"""Axes of the queries and of the keys of attentions that are not between patches; places of a memory are training rows."""
DIGITS = 6
"""Significant digits of a score."""


class SeriesScores(NamedTuple):
    """Scores of a series; NaN for steps of which nothing was observed."""

    record: SeriesRecord
    scores: Scores


def build_scorer(model: Detector, name: str, config: AnomalyConfig) -> Scorer:
    """Scorer of one of the detectors; the windows of k-means and PCA always share their score among their steps."""
    data, settings = config.data, config.model
    options: dict[str, Any] = {"stride": data.stride, "device": next(model.parameters()).device}
    if name == "model":
        return Scorer(model.score, window=data.window, mean=settings.aggregate != "last", **options)
    length = settings.baseline_window or data.window
    return Scorer(getattr(model, name), window=length, mean=True, **options)


def score_series(model: Detector, name: str, series: EncodedSeries, config: AnomalyConfig, seed: int = 0) -> Scores:
    """Scores of a whole series; NaN for steps of which nothing was observed."""
    if name == "random":
        return draw_scores(len(series), seed)
    scorer, rows = build_scorer(model, name, config), Rows.of(series)
    scores = np.concatenate((scorer.push(rows), scorer.finish()))
    scores = Postprocess(config.model).push(scores) if name == "model" else scores
    return np.where(series.observed.any(1), scores, np.nan)


def score_all(
    model: Detector, series: Sequence[EncodedSeries], config: AnomalyConfig, names: Sequence[str] = Detector.names
) -> dict[str, Scored]:
    """Scores and threshold of each detector."""
    return {
        name: Scored(
            [score_series(model, name, one, config, seed) for seed, one in enumerate(series)], model.threshold(name)
        )
        for name in names
    }


def label_series(records: Sequence[SeriesRecord]) -> list[Labelled]:
    """Labels of series, and the window of their VUS by the period of their first column."""
    labelled = []
    for record in records:
        if record.label is None:
            raise DataError(
                f"{record.where} begins a series without labels, which metrics need: name their column, of 0 and 1, "
                "with data.label"
            )
        labelled.append(Labelled(record.label, suggest_window(fill_missing(record.target[:, 0]))))
    return labelled


def fill_missing(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values with the mean where one is missing."""
    mean = np.nanmean(values) if not np.isnan(values).all() else 0.0
    filled: NDArray[np.float64] = np.where(np.isnan(values), mean, values)
    return filled


class AnomalyPredictor(Predictor):
    """An input is the path of a table; the answer has a score and an alarm for each of its rows."""

    own_threshold: float | None = None
    """Threshold of alarms that was asked for; None: that of the training."""

    @property
    def threshold(self) -> float:
        """Score from which a step is an alarm."""
        return self.model.threshold("model") if self.own_threshold is None else self.own_threshold

    def set_threshold(self, value: str) -> None:
        """Set the threshold of alarms."""
        try:
            self.own_threshold = float(value)
        except ValueError:
            raise ConfigError(f"--threshold needs a number, got {value!r}") from None

    def outcomes(
        self, inputs: Sequence[Input], *, best: int = 1, align: bool = False, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The index of each table with its scores."""
        if best != 1 or align:
            raise ConfigError("a table has one score for each step; leave --nbest and --align out, --trace has the weights")
        if self.recorder is not None and inputs:
            self.recorder.take(lambda: self.trace(inputs))
        for index, source in enumerate(inputs):
            yield index, [] if index in done else [self.score(self.read(source, index + 1))]

    def score(self, records: Sequence[SeriesRecord]) -> Prediction:
        """Scores and alarms of series, as rows of a table and as fields."""
        results = [
            SeriesScores(record, score_series(self.model, "model", self.codec.encode(record), self.config))
            for record in records
        ]
        threshold, highest = self.threshold, -math.inf
        file, tables = StringIO(), []
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.header)
        for record, scores in results:
            rows = list(self.rows(record, scores))
            writer.writerows(rows)
            highest = max([highest, *scores[~np.isnan(scores)].tolist()])
            alarms = (scores >= threshold).tolist()
            values = [None if math.isnan(score) else float(f"{score:.{DIGITS}g}") for score in scores.tolist()]
            tables.append(
                {"id": record.id, "time": format_steps(record.times, record.frequency), "score": values, "alarm": alarms}
            )
        fields = {"threshold": threshold, "series": tables}
        return Prediction(file.getvalue().rstrip("\n"), highest, [], [], fields=fields)

    @property
    def header(self) -> list[str]:
        """Names of the columns of an answer."""
        columns = self.codec.columns
        time = columns.time or ("row" if self.codec.series.frequency.unit == "numbers" else "time")
        return [*([columns.id] if columns.id else []), time, "score", "alarm"]

    def rows(self, record: SeriesRecord, scores: Scores) -> Iterator[list[str]]:
        """Rows of an answer; a step of which nothing was observed has no score and no alarm."""
        for time, score in zip(format_steps(record.times, record.frequency), scores.tolist(), strict=True):
            yield self.row(record.id, time, score)

    def row(self, key: str, time: str, score: float) -> list[str]:
        """Row of one step."""
        alarm = str(int(score >= self.threshold))
        return [*([key] if self.codec.columns.id else []), time, "" if math.isnan(score) else f"{score:.{DIGITS}g}", alarm]

    def stream(self, source: Input, *args: Any, **options: Any) -> Iterator[str]:
        """Rows of the answer to one table while its rows arrive, each as a line; "-" is standard input."""
        yield ",".join(self.header) + "\n"
        for step in stream_table(str(source), self.codec, self.build_stream):
            file = StringIO()
            csv.writer(file, lineterminator="\n").writerow(self.row(*step))
            yield file.getvalue()

    def build_stream(self) -> tuple[Scorer, Postprocess]:
        """State of one series that arrives."""
        return build_scorer(self.model, "model", self.config), Postprocess(self.config.model)

    def read(self, source: Input, number: int = 1) -> list[SeriesRecord]:
        """Series of a table by its path, or one that was read."""
        if isinstance(source, SeriesRecord):
            return [source]
        return [self.task.prepare(record) for record in self.codec.read(str(source), number)]

    def read_table(self, path: str | os.PathLike[str], **columns: str) -> list[SeriesRecord]:
        """Series of a table with labels; its columns are those of training where they are not named."""
        if unknown := columns.keys() - set(self.config.data.columns):
            raise ConfigError(f"{min(unknown)} is no column of {self.name}; it has {', '.join(self.config.data.columns)}")
        changes: dict[str, Any] = dict(columns)
        if "target" in columns:
            changes["target"] = split_names(columns["target"])
        series = read_series(os.fspath(path), replace(self.codec.series.columns, **changes), self.codec.limits)
        return [self.task.prepare(record) for record in series]

    def is_known(self, source: Input) -> bool:
        """True: any series of these columns can be scored."""
        return True

    def fits(self, source: Input) -> bool:
        """True: a table is scored window by window; what is wrong with it is said when it is read."""
        return True

    def check_search_options(self, options: Mapping[str, Any], settings: Sequence[str]) -> None:
        """Raise for options and settings of text generation."""
        used = [f"--{name.replace('_', '-')}" for name in WRITING if name != "stream" and options.get(name)]
        used += [f"--{setting.partition('=')[0]}" for setting in settings]
        if used:
            raise ConfigError(
                f"{used[0]} is for models that write text, and this one ({self.name}) writes none; leave it out"
            )

    def evaluate_records(self, prepared: Sequence[SeriesRecord], *, beam: int | None = None) -> Metrics:
        """Metrics of the model, of k-means, of PCA and of random scores on labelled series."""
        labelled = label_series(prepared)
        if not any(one.labels.any() and not one.labels.all() for one in labelled):
            raise DataError(
                f"{prepared[0].where} begins series of which none has both normal steps and anomalies in its labels, which "
                "metrics compare; take rows with both"
            )
        series = [self.codec.encode(record) for record in prepared]
        return to_metrics(compare(labelled, score_all(self.model, series, self.config)), labelled)

    def evaluate_examples(self, examples: Sequence[EncodedSeries], *, beam: int | None = None) -> Metrics:
        """Metrics on encoded series."""
        return self.evaluate_records([example.record for example in examples])

    def find_unscored(self, prepared: Sequence[SeriesRecord], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """Indices of the series whose scores are not finite, and their errors."""
        errors = {}
        for index, record in enumerate(prepared):
            series = self.codec.encode(record)
            scores = score_series(self.model, "model", series, self.config)
            if not np.isfinite(scores[series.observed.any(1)]).all():
                errors[index] = UndistributedError(
                    "scores need to be finite, got NaN or infinity for this series; look for NaN in the model's parameters"
                )
        return errors

    def trace(self, inputs: Any, *args: Any, **options: Any) -> Trace:
        """Attention weights in the window of each table's highest score."""
        examples = list[Example]()
        graph: Graph | None = None
        for number, source in enumerate(split_inputs(inputs)[1], 1):
            for record in self.read(source, number):
                recorder = record_network(self.model, graph=graph is None)
                with recorder:
                    examples.append(self.trace_worst(record))
                graph = graph or recorder.graph()
        if not examples:
            raise ValueError("trace needs one input or more, got none")
        assert graph is not None
        return Trace(self.name, tuple(examples), graph)

    def trace_worst(self, record: SeriesRecord) -> Example:
        """Attention weights in the window that ends a little after the step of the highest score."""
        series, window = self.codec.encode(record), self.config.data.window
        scores = score_series(self.model, "model", series, self.config)
        worst = int(np.nanargmax(scores)) if not np.isnan(scores).all() else 0
        end = min(len(record), max(window, worst + window // 4 + 1))
        rows = Rows.of(series).cut(max(0, end - window), end)
        source = collate([rows], window).to(next(self.model.parameters()).device)
        with torch.no_grad():
            detection = self.model(source, weights=True)
        axes, looks = dict[str, Axis](), {}
        for name, weights in detection.weights.items():
            query, key = AXES.get(name, ("patches", "patches"))
            looks[name] = AxisWeights(query, key, weights[0])
            for axis, size in zip((query, key), weights.shape[2:], strict=True):
                axes[axis] = self.build_axis(axis, size, record, end)
        title = f"{record.id or record.where}: step {worst + 1:,}, score {scores[worst]:.{DIGITS}g}"
        return build_example(None, ForwardTrace(axes, looks, ()), title)

    def build_axis(self, name: str, size: int, record: SeriesRecord, end: int) -> Axis:
        """Axis of the patches of a window, of the windows of a memory, or of vectors that have a number alone."""
        if name == "patches":
            return self.patch_axis(record, end)
        if name != "memory":
            return Index(size)
        memory = self.model.network.memory
        means = memory.windows.unflatten(1, (-1, len(self.codec.targets))).mean(1).cpu().numpy()
        return Series(memory.places.double().cpu().numpy(), means, self.codec.targets, dates=False)

    def patch_axis(self, record: SeriesRecord, end: int) -> Series:
        """Axis of the patches of a window: the time of their first step, and the mean of their values."""
        window, patch = self.config.data.window, self.config.model.patch
        first = end - window
        times = np.array([record.times[max(0, place)] for place in range(first, end, patch)])
        values = np.full((window, record.target.shape[1]), np.nan)
        values[max(0, -first) :] = record.target[max(0, first) : end]
        grouped = values.reshape(-1, patch, values.shape[1])
        present = ~np.isnan(grouped)
        means = np.where(present, grouped, 0).sum(1) / np.maximum(present.sum(1), 1)
        return Series(times, means.astype(np.float32), self.codec.targets, dates=record.times.dtype.kind != "f")
