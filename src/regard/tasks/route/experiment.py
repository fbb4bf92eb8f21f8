"""Routes: a policy that is trained on their length alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import nn

from regard import tasks
from regard.alignment.heads import Head
from regard.config import Dropout
from regard.data.codec import DataReport
from regard.errors import ConfigError
from regard.tasks.kinds.tables import Tables, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.tasks.route.batch import GeneratedPoints, RouteExample, RouteLoader
from regard.tasks.route.codec import PointCodec
from regard.tasks.route.config import RouteData, RouteModel, RouteTrain
from regard.tasks.route.loss import RouteLoss
from regard.tasks.route.model import AttentionModel
from regard.tasks.route.records import LEAST, Instance, read_instances
from regard.tasks.route.rules import RULES as RULES
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.tasks.route.predictor import RoutePredictor

FIGURES = ("length", "gap")
"""Metrics that may be monitored; less is better."""


class GeneratedReport(NamedTuple):
    """Report on a training without a file."""

    points: int
    instances: int
    held_out: None = None

    def notes(self) -> dict[str, Any]:
        """Numbers of points and of instances, for the log."""
        return {"points": self.points, "instances": self.instances}

    def __str__(self) -> str:
        return f"{self.instances:,} instances of {self.points:,} points are generated anew for each step"


@dataclass(frozen=True)
class RouteConfig(TaskConfig):
    """Settings of learning routes."""

    FAMILY: ClassVar[str] = "regard.tasks.route.experiment"
    WRITES: ClassVar[bool] = False
    HEEDED: ClassVar[tuple[str, ...]] = ("train.cuda_graphs",)

    data: RouteData = field(default_factory=RouteData)
    model: RouteModel = field(default_factory=RouteModel)
    dropout: Dropout = field(default_factory=Dropout)
    train: RouteTrain = field(default_factory=RouteTrain)


def experiment(name: str, task: Task, config: RouteConfig, out: Path | None = None) -> tuple[Experiment, DataReport]:
    """The experiment for the training loop, and the report on the instances."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    if config.train.monitor not in FIGURES:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(FIGURES)}, got {config.train.monitor!r}")
    begin = start(config, load_codec, out)
    data, codec = config.data, PointCodec(config.data.max_points)
    named = tables(data, read, "instance", write_points)
    splits = named or Tables([], generate_instances(data.samples, data.points, seed=0))
    examples, valid = codec.encode_all(splits.train), codec.encode_all(splits.valid).examples
    report: Any = examples.report._replace(held_out=splits.held_out)
    if named is None:
        report = GeneratedReport(data.points, data.batch_size)
    torch.manual_seed(config.train.seed)
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    loader: Any = GeneratedPoints(data.batch_size, data.points, config.train.seed)
    if named is not None:
        loader = RouteLoader(examples.examples, data.batch_size, config.train.seed)
    return Experiment(
        model=model,
        codec=codec,
        train=loader,
        valid=valid,
        loss=RouteLoss(config.train),
        evaluate=Evaluation(name, config, codec, valid),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        extra_files=write_samples(splits.valid) if named is None else {},
    ), report


class Evaluation:
    """Metrics of a model while it is trained; the solver's routes are computed once."""

    def __init__(self, name: str, config: RouteConfig, codec: PointCodec, valid: Sequence[RouteExample]):
        self.name, self.config, self.codec, self.valid = name, config, codec, valid
        self.solved: Any = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        predictor = build_predictor(tasks.bind(self.name), self.config, self.codec, model, Head())
        self.solved = predictor.solved = self.solved or predictor.solve(self.valid)
        return predictor.figures(self.valid)


def generate_instances(samples: int, points: int, seed: int) -> list[Instance]:
    """Instances of points that are uniform in the unit square."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(samples, points, 2, generator=generator, dtype=torch.float64).tolist()
    return [Instance(tuple((x, y) for x, y in instance), f"points:{number}") for number, instance in enumerate(places, 1)]


def write_points(instances: Sequence[Instance]) -> list[str]:
    """Points of instances as text, by which equal ones are held out together."""
    return [json.dumps(instance.points) for instance in instances]


def write_samples(instances: Sequence[Instance]) -> Mapping[str, bytes]:
    """Files of the validation instances, and of the points of the first."""
    rows = "".join(json.dumps({"points": instance.points}) + "\n" for instance in instances)
    first = "".join(f"{x!r},{y!r}\n" for x, y in instances[0].points)
    return {"samples/instances.jsonl": rows.encode(), "samples/points.csv": f"x,y\n{first}".encode()}


def build(config: RouteConfig, codec: PointCodec) -> nn.Module:
    """The model that a config describes."""
    return build_small(config)


def build_small(config: RouteConfig) -> AttentionModel:
    """The model of a config, whose size does not depend on data: validates the settings of model and data."""
    model, data = config.model, config.data
    if not LEAST <= data.points <= data.max_points:
        raise ConfigError(f"data.points needs to be {LEAST} to {data.max_points} (data.max_points), got {data.points}")
    if config.train.baseline == "starts" and config.train.starts < 2:
        raise ConfigError(
            "train.baseline=starts compares several routes of an instance, and train.starts=1 leaves one; sample 2 or more, "
            "or use train.baseline=greedy"
        )
    return AttentionModel(
        model.hidden_size, layers=model.layers, heads=model.heads, inner=model.feedforward_size, cap=model.cap
    )


def read(data: RouteData, path: str) -> list[Instance]:
    """Instances of a file."""
    return read_instances(data, path)


def load_codec(directory: Traversable) -> PointCodec:
    """The codec of a run directory."""
    return PointCodec.load(directory)


def build_predictor(
    task: BoundTask, config: RouteConfig, codec: PointCodec, model: nn.Module, head: Head
) -> "RoutePredictor":
    """The predictor of a model."""
    from regard.tasks.route.predictor import RoutePredictor

    return RoutePredictor(task, config, codec, model)
