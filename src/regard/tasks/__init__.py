"""Tasks, one file or folder each.

A task has the preprocessing of a record (`prepare`), synthetic data for when no file is named (`synthesise`) and a `Config`.
Where its models write text, it also has postprocessing (`finish`) and metrics (`measure`). The class of its config names its
family (`regard.tasks.kinds.types`), which has the model, the loss and the predictor.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import nn

from regard import registry
from regard.data.codec import DataReport
from regard.tasks.kinds.text import TextConfig
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig, Writes, family
from regard.training.experiment import Experiment
from regard.viewer.record.snapshots import film

__all__ = ["BoundTask", "Task", "TaskConfig", "TextConfig", "Writes", "bind", "build", "experiment", "find"]


def find(name: str) -> Task:
    """The task called `name`."""
    return cast(Task, registry.load(registry.locate(name, "tasks"), name))


def bind(name: str) -> BoundTask:
    """The task called `name` with its family, as predictors take it."""
    task = find(name)
    return BoundTask(name, task, family(task.Config))


def experiment(name: str, config: TaskConfig, out: Path | None = None) -> tuple[Experiment, DataReport]:
    """The experiment for the training loop, and the report on the encoded records; `out` is the run directory."""
    task = find(name)
    experiment, report = family(config).experiment(name, task, config, out)
    return replace(experiment, callbacks=(*experiment.callbacks, partial(film, prepare=task.prepare))), report


def build(config: TaskConfig, codec: Any) -> nn.Module:
    """The model that a config describes, for the vocabularies of a codec."""
    return family(config).build(config, codec)
