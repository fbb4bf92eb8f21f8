"""Protocols of tasks and of families, which are tasks with one kind of model.

A family builds the experiment of a config (`experiment`), its model (`build`), the model for a small vocabulary that
validates a config (`build_small`) and a predictor (`build_predictor`); it reads tables (`read`) and saved codecs (`codec`).
The class of a task's config names its family.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

from torch import nn

from regard.alignment.heads import Head
from regard.config import Dropout, Search, Train
from regard.config.section import complete
from regard.data.codec import Report
from regard.metrics.text import Bucket, Measurement
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.inference.forward_predictor import Seeing
    from regard.inference.sequence_predictor import Trained

Figures = dict[str, Measurement | list[Bucket]]
"""Metrics of a task by name: scores with their intervals, and scores by length."""


@dataclass(frozen=True)
class TaskConfig:
    """Settings of a task; each family has its own data and model, and each task its own defaults."""

    FAMILY: ClassVar[str]
    """The module of the family."""
    WRITES: ClassVar[bool] = True
    """True where the models write text, and have settings for search and for sequence training."""

    data: Any = None
    model: Any = None
    dropout: Dropout = field(default_factory=Dropout)
    train: Train = field(default_factory=Train)
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        """Settings that were not named keep the task's defaults."""
        complete(self)


@runtime_checkable
class Task(Protocol):
    """Protocol of the module of a task."""

    Config: type[TaskConfig]

    def prepare(self, record: Any) -> Any: ...

    def synthesise(self, samples: int, seed: int) -> tuple[list[Any], list[Any]]: ...


@runtime_checkable
class Writes(Task, Protocol):
    """Protocol of a task whose models write text: postprocessing and metrics of an output."""

    def finish(self, text: str) -> str: ...

    def measure(self, outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: Any) -> Figures: ...


@runtime_checkable
class Family(Protocol):
    """Protocol of the module of a family."""

    def experiment(self, name: str, task: Task, config: Any, out: Path | None = None) -> tuple[Experiment, Report]: ...

    def build(self, config: Any, codec: Any) -> nn.Module: ...

    def build_small(self, config: Any) -> nn.Module: ...

    def read(self, data: Any, path: str) -> list[Any]: ...

    def codec(self, directory: Traversable) -> Any: ...

    def build_predictor(self, name: str, config: Any, codec: Any, model: Any, head: Head) -> "Trained | Seeing": ...


@runtime_checkable
class Writing(Family, Protocol):
    """Protocol of a family whose models write text, and may have metrics of their own."""

    def measure_model(self, trained: Any, examples: Sequence[Any]) -> Mapping[str, Measurement]: ...


def family(config: TaskConfig | type[TaskConfig]) -> Family:
    """The family of a config, or of a class of them."""
    return cast(Family, import_module(config.FAMILY))
