"""Forecasting: the values of series after their end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from regard.alignment.heads import Head
from regard.config import Dropout
from regard.data.series.codec import SeriesCodec
from regard.data.series.records import SeriesRecord
from regard.data.series.settings import SeriesData, split_names
from regard.data.series.synthetic import NAMES, write_csv
from regard.data.series.windows import SeriesLoader, Windows
from regard.errors import ConfigError, DataError
from regard.tasks.forecast import data as tables
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.data import Parts
from regard.tasks.forecast.evaluation import (
    BASELINES,
    Baselines,
    calibrate,
    evaluate_windows,
    select_later_half,
)
from regard.tasks.forecast.linear import choose_look_back, fit_linear
from regard.tasks.forecast.loss import ForecastLoss
from regard.tasks.forecast.model import CovariateHead, Forecaster, ReversibleNorm, Sizes
from regard.tasks.forecast.output import OUTPUTS, Output, Points
from regard.tasks.forecast.predictor import ForecastPredictor
from regard.tasks.forecast.rules import RULES as RULES
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.training.experiment import Experiment

FIGURES = ("loss", "mse", "mae", "mase", "smape", "pinball", "crps", "sql")
"""Metrics that may be monitored."""
SHOWN = ("loss", "mse", "mae", "mase", "crps", "coverage80")
"""Metrics of the model after an evaluation."""
COMPARED = ("mse", "mae")
"""Metrics of the baselines beside them."""
READS = {"linear": "", "patch": "", "inverted": "past", "recurrent": "all", "transformer": "all", "temporal_fusion": "all"}
"""Covariates that a network reads by itself."""


@dataclass(frozen=True)
class ForecastConfig(TaskConfig):
    """Settings of forecasting."""

    FAMILY: ClassVar[str] = "regard.tasks.forecast.experiment"
    WRITES: ClassVar[bool] = False
    HEEDED: ClassVar[tuple[str, ...]] = (
        "train.scheduled_sampling",
        "train.scheduled_sampling_max",
        "train.scheduled_sampling_steps",
        "train.cuda_graphs",
    )

    data: SeriesData = field(default_factory=SeriesData)
    model: ForecastModel = field(default_factory=ForecastModel)
    dropout: Dropout = field(default_factory=Dropout)


class SeriesReport(NamedTuple):
    """Inputs of a training: series, windows, and the look-back that was chosen."""

    series: int
    windows: int
    valid: int
    look_back: int
    candidates: tuple[tuple[int, float], ...] = ()
    """Look-backs with the errors of their linear forecasts, where one was chosen."""
    held_out: None = None

    def notes(self) -> dict[str, Any]:
        """Counts and the look-back, for the log."""
        return {name: value for name, value in self._asdict().items() if name != "held_out"}

    def __str__(self) -> str:
        chosen = ""
        if self.candidates:
            errors = ", ".join(f"{steps}: {error:.4g}" for steps, error in self.candidates)
            chosen = f", the best of the linear forecasts on the validation rows (MSE {errors})"
        return (
            f"{self.series:,} series, {self.windows:,} windows to train on and {self.valid:,} to validate with, "
            f"look-back {self.look_back:,}{chosen}"
        )


def experiment(name: str, task: Task, config: ForecastConfig, out: Path | None = None) -> tuple[Experiment, SeriesReport]:
    """The experiment for the training loop, and the report on series and windows."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin = start(config, load_codec, out)
    parts, data, extra_files = read_parts(task, config)
    if config.train.monitor not in FIGURES:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(FIGURES)}, got {config.train.monitor!r}")
    codec, candidates = fit_codec(parts, data, config) if begin is None else (begin.codec, ())
    check_covariates(config, codec)
    train, valid = build_windows(parts, codec)
    if not len(train) or not len(valid):
        raise DataError(
            f"too little is there: {len(train):,} windows to train on and {len(valid):,} to validate with, with a look-back "
            f"of {codec.look_back:,} and a horizon of {codec.horizon:,}; give longer series, or a shorter horizon"
        )
    torch.manual_seed(config.train.seed)
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    model.linear.set(fit_linear(train, codec.look_back, codec.horizon))
    report = SeriesReport(len(parts.parts), len(train), len(valid), codec.look_back, candidates)
    loader = SeriesLoader(train, codec.look_back, codec.horizon, batch_size=config.data.batch_size, seed=config.train.seed)
    return Experiment(
        model=model,
        codec=codec,
        train=loader,
        valid=valid,
        loss=ForecastLoss(config.train),
        evaluate=Judge(config, codec, valid),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        extra_files=extra_files,
    ), report


def read_parts(task: Task, config: ForecastConfig) -> tuple[Parts, SeriesData, Mapping[str, bytes]]:
    """Series split by time, the settings that name their columns, and files to try the model on."""
    data = config.data
    if data.train is None and data.valid is not None:
        raise DataError("data.valid is given and data.train is not: name a file to train on")
    if data.train is not None:
        valid = tables.read(data, data.valid) if data.valid is not None else []
        return tables.split_series(tables.read(data, data.train), data, valid), data, {}
    records: Sequence[SeriesRecord] = task.synthesise(data.samples, seed=0)[0]
    columns: dict[str, Any] = {kind: ",".join(getattr(NAMES, kind)) for kind in ("target", "past", "known", "static")}
    data = replace(data, time=NAMES.time, id="shop", **columns)
    return tables.split_series(records, data), data, {"samples/sales.csv": write_csv(records, data.horizon)}


def fit_codec(parts: Parts, data: SeriesData, config: ForecastConfig) -> tuple[SeriesCodec, tuple[tuple[int, float], ...]]:
    """Codec of the training rows, and the look-backs among which one was chosen."""
    candidates = tables.candidate_look_backs(parts.parts, data)
    least = config.model.patch_length if config.model.network == "patch" and not data.look_back else 1
    candidates = [steps for steps in candidates if steps >= least] or [least]
    training = [part.training for part in parts.parts]
    extents = {part.record.id: part.extent for part in parts.parts}
    codecs = [SeriesCodec.fit(training, replace(data, look_back=steps), extents) for steps in candidates]
    if len(codecs) == 1:
        return codecs[0], ()
    windows = [build_windows(parts, codec) for codec in codecs]
    fitting = [place for place, (train, valid) in enumerate(windows) if len(train) and len(valid)]
    if not fitting:
        return codecs[0], ()
    candidates = [candidates[place] for place in fitting]
    train, valid = zip(*(windows[place] for place in fitting), strict=True)
    chosen, errors = choose_look_back(candidates, train, valid, data.horizon)
    return codecs[fitting[candidates.index(chosen)]], tuple(zip(candidates, errors, strict=True))


def build_windows(parts: Parts, codec: SeriesCodec) -> tuple[Windows, Windows]:
    """Windows to train on and to validate with."""
    series = [codec.encode(part.record) for part in parts.parts]
    train = tables.training_windows(parts.parts, series, codec)
    if parts.valid:
        return train, tables.whole_windows([codec.encode(record) for record in parts.valid], codec)
    return train, tables.validation_windows(parts.parts, series, codec)


def check_covariates(config: ForecastConfig, codec: SeriesCodec) -> None:
    """Raise for covariates that the network would not read."""
    network = config.model.network
    if codec.names.past and not READS[network]:
        raise ConfigError(
            f"data.past={','.join(codec.names.past)} would change nothing: model.network={network} reads the past of the "
            f"targets alone; choose {', '.join(name for name, kinds in READS.items() if kinds)}, or leave it out"
        )


class Judge:
    """Metrics of a model while it is trained, beside those of the baselines, which are computed once."""

    def __init__(self, config: ForecastConfig, codec: SeriesCodec, valid: Windows):
        self.config, self.codec, self.valid = config, codec, valid
        self.baselines: dict[str, float] | None = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, Forecaster), "the network of a forecast is a Forecaster"
        codec, batch_size = self.codec, self.config.search.select_batch_size()
        baselines = Baselines(model.linear.read(), codec.season, codec.look_back, codec.horizon)
        later = select_later_half(self.valid)
        earlier = [self.valid[index] for index in range(len(self.valid)) if not later[index]] or self.valid
        sizes = {"look_back": codec.look_back, "horizon": codec.horizon, "batch_size": batch_size}
        shift = calibrate(model, earlier, **sizes)
        errors = evaluate_windows(
            model,
            self.valid,
            baselines,
            batch_size=batch_size,
            names=() if self.baselines is not None else BASELINES,
            shift=shift,
            quantile_windows=later,
        )
        model.calibration.set(calibrate(model, self.valid, **sizes))
        if self.baselines is None:
            self.baselines = {f"{name}.{metric}": errors[name].means()[metric] for name in BASELINES for metric in COMPARED}
        means = errors["model"].means()
        shown = dict.fromkeys((*SHOWN, self.config.train.monitor))
        return {name: means[name] for name in shown} | self.baselines


def build(config: ForecastConfig, codec: SeriesCodec) -> Forecaster:
    """The model that a config describes, for the columns of a codec."""
    sizes = Sizes(
        targets=len(codec.names.target),
        look_back=codec.look_back,
        horizon=codec.horizon,
        past=len(codec.past_names),
        known=len(codec.known_names),
        static=tuple(len(vocabulary) + 1 for vocabulary in codec.vocabularies),
        output=1,
    )
    return build_forecaster(config, sizes, has_covariates=bool(codec.names.known or codec.names.static))


def build_forecaster(config: ForecastConfig, sizes: Sizes, has_covariates: bool) -> Forecaster:
    """The model that a config describes, for sizes whose output the config decides."""
    output = build_output(config.model)
    sizes = sizes._replace(output=output.size, point=output.point_place)
    name = config.model.network
    network = import_module(f"regard.tasks.forecast.models.{name}").build(config.model, config.dropout, sizes)
    head = CovariateHead(sizes, config.model.hidden_size) if has_covariates and READS[name] != "all" else None
    norm = ReversibleNorm(sizes.targets, config.model.normalise, config.model.affine)
    return Forecaster(network, norm, output, sizes, head)


def build_output(model: ForecastModel) -> Output:
    """The output of the settings of a model."""
    return Points(model.error) if model.output == "points" else OUTPUTS[model.output]


def build_small(config: ForecastConfig) -> nn.Module:
    """The model of a config for small series: validates the settings of model and data."""
    data = config.data
    if data.horizon < 1:
        raise ConfigError(f"data.horizon is the number of steps to forecast, 1 or more, got {data.horizon}")
    look_back = data.look_back or max(config.model.patch_length, 4)
    targets = max(1, len(split_names(data.target)))
    sizes = Sizes(targets, look_back, data.horizon, past=2, known=3, static=(2,), output=1)
    return build_forecaster(config, sizes, has_covariates=True)


def read(data: SeriesData, path: str) -> list[SeriesRecord]:
    """Series of a table."""
    return tables.read(data, path)


def load_codec(directory: Traversable) -> SeriesCodec:
    """The codec of a run directory."""
    return SeriesCodec.load(directory)


def build_predictor(
    task: BoundTask, config: ForecastConfig, codec: SeriesCodec, model: nn.Module, head: Head
) -> ForecastPredictor:
    """The predictor of a model."""
    return ForecastPredictor(task, config, codec, model)
