"""Tasks: what is learned, one file each.

A task's file says what a record looks like to the model (`prepare`) and what to train on when no file is given (`draw`), and
holds its `Config`. Where its models write text, it says what that means to a person (`finish`), and how good it is
(`measure`). What tasks of one shape share is in `regard.tasks.kinds.types`: the class of a task's config says which.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import nn

from regard import registry
from regard.data.codec import Report
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


def experiment(name: str, config: TaskConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records; `out` is the directory to train into."""
    task = find(name)
    made, report = family(config).experiment(name, task, config, out)
    return replace(made, callbacks=(*made.callbacks, partial(film, prepare=task.prepare))), report


def build(config: TaskConfig, codec: Any) -> nn.Module:
    """The model that a config describes, for the vocabularies of a codec."""
    return family(config).build(config, codec)
