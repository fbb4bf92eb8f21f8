"""The record that a task hands to the training loop: all that the loop ever knows of a task."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from regard.config import Train
from regard.data.modality import AnyBatch, Batches
from regard.losses.types import Loss, Progress
from regard.training.callbacks import MakeCallback


@runtime_checkable
class Saved(Protocol):
    """What stands beside the weights in a run directory: a codec."""

    def save(self, directory: Path) -> Any: ...


@runtime_checkable
class HasTrain(Protocol):
    """A task's config: a frozen dataclass with a part for the loop."""

    @property
    def train(self) -> Train: ...


@runtime_checkable
class HasBaseline(Protocol):
    """Loss with a baseline that may depend on the losses of earlier updates, which it is then given one by one."""

    @property
    def has_baseline(self) -> bool: ...

    def update_baseline(self, loss: Loss) -> None: ...


@runtime_checkable
class Repeating(Protocol):
    """A loss that may say that it does the same for every batch of one shape: it never waits for the GPU to learn what to do
    next, and goes by nothing but the batch's tensors. Updates can then be replayed."""

    @property
    def repeats(self) -> bool: ...


@dataclass(frozen=True)
class Experiment:
    """A model, its data and what to make of them.

    A `loss` that is a module has something to learn or to keep: its parameters are trained beside the model's, and it is in
    the checkpoints; the published model is without it.
    `evaluate` gets the model in evaluation mode without gradients and returns figures, one of them called `better`; less of
    that is better, unless `upwards`.
    """

    model: nn.Module
    codec: Saved
    train: Batches
    loss: Callable[[nn.Module, AnyBatch, Progress], Loss]
    evaluate: Callable[[nn.Module], Mapping[str, float]]
    config: HasTrain
    valid: Any = None
    task: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What became of the data, for the log."""
    better: str = "loss"
    upwards: bool = False
    beside: Mapping[str, bytes] = field(default_factory=dict)
    """Files for a person to begin with, by their path in the run directory; they are not in its manifest."""
    callbacks: tuple[MakeCallback, ...] = ()
    """Makers of what is called between steps."""

    @property
    def size(self) -> int | None:
        """The width of the model, where its config says one; the noam schedule asks for it."""
        return getattr(getattr(self.config, "model", None), "hidden_size", None)

    @property
    def learning(self) -> nn.Module | None:
        """The loss, where it has something to learn or to keep."""
        return self.loss if isinstance(self.loss, nn.Module) else None

    def updated(self, loss: Loss) -> None:
        """Tell the loss what an update cost, if it wants to know."""
        if self.watched is not None:
            self.watched.update_baseline(loss)

    @property
    def watched(self) -> HasBaseline | None:
        """The loss, where it goes by what earlier updates cost."""
        return self.loss if isinstance(self.loss, HasBaseline) and self.loss.has_baseline else None

    def judged(self, figures: Mapping[str, float]) -> float:
        """The figure that decides, turned so that less is better; NaN counts as the worst."""
        if self.better not in figures:
            raise ValueError(
                f"evaluate needs to return {self.better!r}, which decides what is better, got {', '.join(figures)}"
            )
        value = float(figures[self.better])
        return math.inf if math.isnan(value) else -value if self.upwards else value
