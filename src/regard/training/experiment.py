"""Experiment: the record that a task hands to the training loop, and all that the loop knows of a task."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from regard.config import Train
from regard.data.modality import AnyBatch, Batches, EpochBatches
from regard.errors import ConfigError
from regard.losses.types import Loss, Progress
from regard.training.callbacks import CallbackFactory


@runtime_checkable
class Saveable(Protocol):
    """A codec: it saves its own files beside the weights in a run directory."""

    def save(self, directory: Path) -> Any: ...


@runtime_checkable
class HasTrain(Protocol):
    """Config of a task: a frozen dataclass with the settings of the training loop in `train`."""

    @property
    def train(self) -> Train: ...


@runtime_checkable
class HasBaseline(Protocol):
    """Loss with a baseline that may depend on the losses of earlier updates, which the loop passes to it one by one."""

    @property
    def has_baseline(self) -> bool: ...

    def update_baseline(self, loss: Loss) -> None: ...


@runtime_checkable
class CapturableLoss(Protocol):
    """Loss that a CUDA graph may capture if `capturable` is True.

    Its operations then depend on nothing but the shapes of the batch's tensors, and it never waits for the GPU.
    """

    @property
    def capturable(self) -> bool: ...


@dataclass(frozen=True)
class Experiment:
    """A model, its codec, its data, its loss and its evaluation.

    A `loss` that is a module has parameters or buffers: they are trained beside the model's and saved in checkpoints, and
    the published model is without them.
    `evaluate` gets the model in evaluation mode without gradients and returns metrics, one of them called `monitor`, which
    decides on the best model; lower is better unless `higher_is_better`.
    """

    model: nn.Module
    codec: Saveable
    train: Batches
    loss: Callable[[nn.Module, AnyBatch, Progress], Loss]
    evaluate: Callable[[nn.Module], Mapping[str, float]]
    config: HasTrain
    valid: Any = None
    task: str = ""
    data_report: Mapping[str, Any] = field(default_factory=dict)
    """Counts of records, among them those dropped or truncated, for the first line of the log."""
    monitor: str = "loss"
    higher_is_better: bool = False
    extra_files: Mapping[str, bytes] = field(default_factory=dict)
    """Files to try the model on, by their path in the run directory; they are not in its manifest."""
    callbacks: tuple[CallbackFactory, ...] = ()

    @cached_property
    def settings(self) -> Train:
        """Settings of the training loop; `max_steps` is computed where the config has the length in epochs."""
        train = self.config.train
        if train.max_epochs is None:
            return train
        if not isinstance(self.train, EpochBatches):
            raise ConfigError("train.max_epochs needs training data that is counted in epochs; use train.max_steps")
        steps = math.ceil(train.max_epochs * self.train.steps_per_epoch() / train.accumulate_steps)
        return replace(train, max_steps=max(1, steps))

    @property
    def hidden_size(self) -> int | None:
        """Hidden size of the model where its config has one; the noam schedule scales with it."""
        return getattr(getattr(self.config, "model", None), "hidden_size", None)

    @property
    def loss_module(self) -> nn.Module | None:
        """The loss if it is a module, which has parameters to train or buffers to save."""
        return self.loss if isinstance(self.loss, nn.Module) else None

    @property
    def loss_with_baseline(self) -> HasBaseline | None:
        """The loss if it has a baseline that depends on the losses of earlier updates."""
        return self.loss if isinstance(self.loss, HasBaseline) and self.loss.has_baseline else None

    def update_baseline(self, loss: Loss) -> None:
        """Pass the loss of an update to the baseline, if there is one."""
        if self.loss_with_baseline is not None:
            self.loss_with_baseline.update_baseline(loss)

    def monitored_value(self, metrics: Mapping[str, float]) -> float:
        """The monitored metric, negated if higher is better, so that lower always is; NaN counts as infinity."""
        if self.monitor not in metrics:
            raise ValueError(f"evaluate needs to return {self.monitor!r}, the monitored metric, got {', '.join(metrics)}")
        value = float(metrics[self.monitor])
        return math.inf if math.isnan(value) else -value if self.higher_is_better else value
