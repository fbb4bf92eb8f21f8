"""Experiments of image tasks that write no text: assembly and evaluation."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import tasks
from regard.alignment.heads import Head
from regard.data.codec import Report
from regard.data.image.augmentation import named
from regard.data.image.types import ImageExample
from regard.data.modality import AnyBatch
from regard.errors import ConfigError, DataError
from regard.inference.forward_predictor import CachedExamples, ForwardPredictor
from regard.inference.init_from import Start
from regard.losses.types import Loss, Progress
from regard.metrics.text import LOWER_IS_BETTER, Measurement
from regard.tasks.kinds.types import TaskConfig, family
from regard.training.experiment import Experiment

Cost = Callable[[nn.Module, AnyBatch, Progress], Loss]


def assemble(
    name: str,
    config: Any,
    begin: Start | None,
    codec: Any,
    examples: Sequence[ImageExample],
    valid: Sequence[ImageExample],
    report: Report,
    loss: Cost,
    known: Sequence[str],
    beside: Mapping[str, bytes],
) -> tuple[Experiment, Report]:
    """Assemble an experiment from encoded data; equal seeds initialise equal weights. `known` are its metrics."""
    if not examples or not valid:
        raise DataError(f"too little is there: {len(examples)} pictures to train on, {len(valid)} to validate with")
    if config.train.monitor not in known:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(known)}, got {config.train.monitor!r}")
    codec.cache_images(
        [example for example in valid if isinstance(example.picture, (str, Path))]
    )  # what cannot be read is told now
    cache = codec.cache_images(examples)
    codec = codec if begin else codec.standardise(cache)
    torch.manual_seed(config.train.seed)
    model = family(config).build(config, codec)
    if begin is not None:
        begin.give(model)
    return Experiment(
        model=model,
        codec=codec,
        train=codec.train_loader(cache, config.data.budget, config.train.seed, named(config.data.augment)),
        valid=valid,
        loss=loss,
        evaluate=Judge(name, config, codec, valid),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=config.train.monitor not in LOWER_IS_BETTER,
        extra_files=beside,
    ), report


class Judge:
    """Validation of a model in training: all metrics of its kind on valid, whose pictures are decoded once."""

    def __init__(self, name: str, config: TaskConfig, codec: Any, valid: Sequence[ImageExample]):
        self.name, self.config, self.codec, self.valid = name, config, codec, valid
        self.cached: CachedExamples | None = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        predictor = family(self.config).build_predictor(tasks.bind(self.name), self.config, self.codec, model, Head())
        assert isinstance(predictor, ForwardPredictor), "families of one forward pass have such predictors"
        self.cached = predictor.cached = self.cached or CachedExamples(self.valid, predictor.loader(self.valid))
        metrics = predictor.evaluate_examples(self.valid)
        return {name: metric.value for name, metric in metrics.items() if isinstance(metric, Measurement)}


def checked(config: Any) -> None:
    """Raise for settings of data that no picture can be read by."""
    if config.data.channels not in (1, 3):
        raise ConfigError(f"data.channels needs to be 3, in colour, or 1, grey, got {config.data.channels}")
    named(config.data.augment)


def plain(config: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A mean and a deviation for each channel, where only the shape of a network matters."""
    return (0.5,) * config.data.channels, (0.5,) * config.data.channels
