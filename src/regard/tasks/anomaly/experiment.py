"""Anomaly detection: series in, a detector of windows and its threshold out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from regard.alignment.heads import Head
from regard.data.codec import Report
from regard.data.lines import bounds
from regard.data.modality import AnyBatch
from regard.data.series.batch import SeriesBatch
from regard.data.series.calendar import format_times
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesRecord
from regard.data.series.windows import EncodedSeries, SeriesLoader, Span, Window, Windows
from regard.errors import ConfigError, DataError
from regard.losses.types import Loss, Progress
from regard.metrics.text import LOWER_IS_BETTER
from regard.tasks.anomaly.baselines import flatten
from regard.tasks.anomaly.codec import AnomalyCodec
from regard.tasks.anomaly.config import AnomalyConfig, AnomalyData, build_columns
from regard.tasks.anomaly.evaluation import compare
from regard.tasks.anomaly.layers import Sizes
from regard.tasks.anomaly.model import Detector, Memory
from regard.tasks.anomaly.predictor import AnomalyPredictor, label_series, score_all
from regard.tasks.anomaly.rules import RULES as RULES
from regard.tasks.anomaly.scoring import Rows, collate
from regard.tasks.anomaly.synthetic import COLUMNS
from regard.tasks.anomaly.threshold import choose_threshold
from regard.tasks.kinds.types import BoundTask, Task
from regard.training.experiment import Experiment

FITTED = 20_000
"""Windows, at most, among which k-means and PCA choose theirs."""


class Split(NamedTuple):
    """Series of a training table, and the number of rows of each that are trained on; the others are held out."""

    series: list[EncodedSeries]
    rows: list[int]


def experiment(name: str, task: Task, config: AnomalyConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the windows."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, data = start(config, load_codec, out), config.data
    training, labelled = load_records(task, config)
    rows = [split_row(record, data) for record in training]
    check_columns(training, rows, data)
    codec = (
        begin.codec
        if begin
        else AnomalyCodec.fit([record.between(0, row) for record, row in zip(training, rows, strict=True)], data)
    )
    split = Split([codec.encode(record) for record in training], rows)
    windows = Windows(split.series, [Span(data.window, row) for row in rows])
    held_out = Windows(
        split.series, [Span(row + data.window, len(record)) for row, record in zip(rows, split.series, strict=True)]
    )
    offsets = find_offsets(split.series)
    known = ["loss", *(["vus_pr", "vus_roc", "auc_pr", "f1"] if labelled else [])]
    if config.train.monitor not in known:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(known)}, got {config.train.monitor!r}")
    torch.manual_seed(config.train.seed)
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    else:
        fit_windows(model, windows, config, offsets)
    report = Report(len(windows) + len(held_out), len(windows), 0, 0, 0, 0.0)
    return Experiment(
        model=model,
        codec=codec,
        train=SeriesLoader(windows, data.window, 0, batch_size=data.batch_size, seed=config.train.seed),
        valid=held_out,
        loss=DetectorLoss(offsets),
        evaluate=Evaluation(config, codec, split, held_out, labelled),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=config.train.monitor not in LOWER_IS_BETTER,
        extra_files={} if data.train else write_samples(labelled),
    ), report


def load_records(task: Task, config: AnomalyConfig) -> tuple[list[SeriesRecord], list[SeriesRecord]]:
    """Series to train on and labelled ones to compare detectors on: of the named files, or synthetic ones."""
    data = config.data
    if data.train is None:
        if data.valid is not None:
            raise DataError("data.valid is given and data.train is not: name a file to train on")
        return task.synthesise(data.samples, 0)
    training = [task.prepare(record) for record in read(data, data.train)]
    if data.valid is None:
        return training, []
    if not data.label:
        raise ConfigError("data.valid compares detectors by labels, and needs data.label=COLUMN, of 0 and 1")
    return training, [task.prepare(record) for record in read(data, data.valid)]


def split_row(record: SeriesRecord, data: AnomalyData) -> int:
    """Number of rows of a series that are trained on; both parts have a window at least."""
    if not 0 < data.held_out < 1:
        raise ConfigError(f"data.held_out needs to be a share between 0 and 1, got {data.held_out}")
    if len(record) < 2 * data.window:
        raise DataError(
            f"{record.where} begins a series of {len(record):,} rows, and training needs two windows of "
            f"{data.window} at least, one to train on and one to set the threshold on; give more rows, or a smaller "
            "data.window"
        )
    row = round(len(record) * (1 - data.held_out))
    return min(max(row, data.window), len(record) - data.window)


def check_columns(records: Sequence[SeriesRecord], rows: Sequence[int], data: AnomalyData) -> None:
    """Raise for columns of training rows without a value or, as data.constant says, with a single one."""
    for number, name in enumerate(records[0].names.target):
        parts = [record.target[:row, number] for record, row in zip(records, rows, strict=True)]
        for record, part in zip(records, parts, strict=True):
            present = part[~np.isnan(part)]
            which = f" of series {record.id!r}" if record.id else ""
            if not len(present):
                raise DataError(
                    f"{record.where} begins {len(part):,} training rows{which} without any value in column {name!r}; leave "
                    "it out of data.target, or fill it in"
                )
            if data.constant == "refuse" and present.min() == present.max():
                raise DataError(
                    f"{record.where} begins {len(part):,} training rows{which} with one value, {present[0]:g}, in column "
                    f"{name!r}: what is normal cannot be learned of it; leave it out of data.target, or score its distance "
                    "from that value with data.constant=score"
                )


def fit_windows(model: Detector, windows: Windows, config: AnomalyConfig, offsets: Mapping[str, int]) -> None:
    """Fit k-means and PCA on windows of the training rows, and store those of a memory."""
    length = config.model.baseline_window or config.data.window
    spans = [Span(min(length, span.last), span.last) for span in windows.spans]
    every = Windows(windows.series, spans)
    chosen = np.unique(np.linspace(0, len(every) - 1, min(FITTED, len(every))).astype(int)).tolist()
    vectors = flatten(collate([cut_window(every[index], length) for index in chosen], length))
    model.k_means.fit(vectors, config.train.seed)
    model.pca.fit(vectors, config.train.seed)
    if isinstance(model.network, Memory):
        chosen = np.unique(np.linspace(0, len(windows) - 1, min(config.model.memory, len(windows))).astype(int)).tolist()
        stored = [windows[index] for index in chosen]
        vectors = flatten(collate([cut_window(window, config.data.window) for window in stored], config.data.window))
        model.network.memory.fit(vectors, torch.tensor(find_places(stored, offsets)))


def cut_window(window: Window, length: int) -> Rows:
    """Rows of a window of another length with the same end."""
    return Rows.of(window.series).cut(max(0, window.origin - length), window.origin)


def find_places(windows: Sequence[Window], offsets: Mapping[str, int]) -> list[int]:
    """Places of the ends of windows among the rows of all series."""
    return [offsets[window.record.id] + window.origin for window in windows]


def find_offsets(series: Sequence[EncodedSeries]) -> dict[str, int]:
    """Places of the first rows of series, one after another with room between."""
    ends = np.cumsum([2 * len(one) for one in series])
    return {one.record.id: int(end) - 2 * len(one) for one, end in zip(series, ends, strict=True)}


@dataclass(frozen=True)
class DetectorLoss:
    """Sum of the squared errors of the observed values of a batch, and what the detector adds to it."""

    offsets: Mapping[str, int]

    def __call__(self, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
        assert isinstance(batch, SeriesBatch), "series come in batches of windows"
        source = batch.source
        places = torch.tensor(find_places(batch.records, self.offsets), device=source.data.device)
        detection = model(source, places=places)
        count = source.observed.sum().clamp_min(1)
        total = ((source.data - detection.expected).square() * source.observed).sum()
        parts = {} if detection.penalty is None else {"association": detection.penalty * count}
        return Loss(total + sum(parts.values()), count, parts)


@dataclass
class Evaluation:
    """Figures of a model while it is trained: its loss on held-out rows and, where there are labels, those of all detectors.

    The thresholds of the detectors are set before, from their scores of the held-out rows alone.
    """

    config: AnomalyConfig
    codec: AnomalyCodec
    split: Split
    held_out: Windows
    labelled: Sequence[SeriesRecord]
    baselines: dict[str, float] = field(default_factory=dict)
    """Thresholds of the detectors that no training changes."""

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, Detector)
        self.set_thresholds(model)
        figures = {"loss": self.measure_loss(model)}
        if self.labelled:
            series = [self.codec.encode(record) for record in self.labelled]
            figures |= compare(label_series(self.labelled), score_all(model, series, self.config))
        return figures

    @torch.no_grad()
    def measure_loss(self, model: Detector) -> float:
        """Mean squared error of the held-out rows."""
        total, count, device = 0.0, 0, next(model.parameters()).device
        loader = SeriesLoader(self.held_out, self.config.data.window, 0, batch_size=256, shuffle=False)
        for _, batch in loader.in_order():
            source = batch.to(device).source
            total += float(((source.data - model(source).expected).square() * source.observed).sum())
            count += int(source.observed.sum())
        return total / max(count, 1)

    def set_thresholds(self, model: Detector) -> None:
        """Thresholds from the scores of the held-out rows, which follow those of the training rows."""
        settings = self.config.model
        for place, name in enumerate(model.names):
            if name not in self.baselines:
                threshold = self.choose(model, name, settings.threshold, settings.alarm_rate)
                if name != "model":
                    self.baselines[name] = threshold
            model.thresholds[place] = threshold if name == "model" else self.baselines[name]

    def choose(self, model: Detector, name: str, method: str, rate: float) -> float:
        """Threshold of one detector."""
        if name == "random":
            return 1 - rate
        scores = score_all(model, self.split.series, self.config, [name])[name].scores
        parts = [part[row:] for part, row in zip(scores, self.split.rows, strict=True)]
        return choose_threshold(np.concatenate(parts), method, rate)


def build(config: AnomalyConfig, codec: AnomalyCodec) -> Detector:
    """The model that a config describes, for the columns of a codec."""
    series = codec.series
    return build_network(
        config, Sizes(len(codec.targets), config.data.window, len(series.past_names), len(series.known_names))
    )


def build_network(config: AnomalyConfig, sizes: Sizes) -> Detector:
    """The model that a config describes, for sizes of its data."""
    if config.data.window < 1 or config.data.stride < 1:
        raise ConfigError(
            f"a detector needs data.window of 1 or more and data.stride of 1 or more, got {config.data.window} and "
            f"{config.data.stride}"
        )
    if not 0 < config.model.alarm_rate < 1:
        raise ConfigError(f"model.alarm_rate needs to be a share between 0 and 1, got {config.model.alarm_rate}")
    return Detector(config.model, config.dropout, sizes)


def build_small(config: AnomalyConfig) -> Detector:
    """The model of a config for two columns: validates the settings of model and data."""
    return build_network(config, Sizes(2, config.data.window, 1, 1))


def read(data: AnomalyData, path: str) -> list[SeriesRecord]:
    """The series of a table."""
    return read_series(path, build_columns(data), bounds(data))


def load_codec(directory: Traversable) -> AnomalyCodec:
    """The codec of a run directory."""
    return AnomalyCodec.load(directory)


def build_predictor(
    task: BoundTask, config: AnomalyConfig, codec: AnomalyCodec, model: Detector, head: Head
) -> AnomalyPredictor:
    """The predictor of a model."""
    return AnomalyPredictor(task, config, codec, model)


def write_samples(records: Sequence[SeriesRecord]) -> Mapping[str, bytes]:
    """A CSV file of the labelled synthetic series."""
    file = StringIO()
    file.write(f"{COLUMNS['id']},{COLUMNS['time']},{','.join(records[0].names.target)},{COLUMNS['label']}\n")
    for record in records:
        assert record.label is not None
        for time, values, label in zip(format_times(record.times), record.target.tolist(), record.label, strict=True):
            file.write(f"{record.id},{time},{','.join(f'{value:.4f}' for value in values)},{int(label)}\n")
    return {"samples/labelled.csv": file.getvalue().encode()}
