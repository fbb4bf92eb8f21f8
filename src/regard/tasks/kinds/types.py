"""Protocols of tasks and of families, which are tasks with one kind of model.

A family builds the experiment of a config (`experiment`), its model (`build`), the model for a small vocabulary that
validates a config (`build_small`) and a predictor (`build_predictor`); it reads tables (`read`) and codecs (`load_codec`).
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
from regard.data.codec import DataReport
from regard.metrics.text import Measurement, Metrics
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor


@dataclass(frozen=True)
class TaskConfig:
    """Settings of a task; each family has its own data and model, and each task its own defaults."""

    FAMILY: ClassVar[str]
    """The module of the family."""
    WRITES: ClassVar[bool] = True
    """True where the models write text, and have settings for search and for sequence training."""
    HEEDED: ClassVar[tuple[str, ...]] = ()
    """Paths of those settings that have an effect although the models write none."""

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

    def measure(self, outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: Any) -> Metrics: ...


@runtime_checkable
class Family(Protocol):
    """Protocol of the module of a family."""

    def experiment(self, name: str, task: Task, config: Any, out: Path | None = None) -> tuple[Experiment, DataReport]: ...

    def build(self, config: Any, codec: Any) -> nn.Module: ...

    def build_small(self, config: Any) -> nn.Module: ...

    def read(self, data: Any, path: str) -> list[Any]: ...

    def load_codec(self, directory: Traversable) -> Any: ...

    def build_predictor(self, task: "BoundTask", config: Any, codec: Any, model: Any, head: Head) -> "Predictor": ...


@runtime_checkable
class Writing(Family, Protocol):
    """Protocol of a family whose models write text, and may have metrics of their own."""

    def measure_model(self, predictor: Any, examples: Sequence[Any]) -> Mapping[str, Measurement]: ...


def family(config: TaskConfig | type[TaskConfig]) -> Family:
    """The family of a config, or of a class of them."""
    return cast(Family, import_module(config.FAMILY))


@dataclass(frozen=True)
class BoundTask:
    """Task with its name and its family, as predictors take it: `regard.inference.predictor.PredictorTask`."""

    name: str
    module: Any
    family: Any

    def prepare(self, record: Any) -> Any:
        """Record in the form in which the model reads it."""
        return self.module.prepare(record)

    def read(self, data: Any, path: str) -> list[Any]:
        """Records of a table, whose columns the settings `data` name."""
        records: list[Any] = self.family.read(data, path)
        return records

    def build(self, config: Any, codec: Any) -> nn.Module:
        """Model of a config, for the vocabularies of a codec."""
        model: nn.Module = self.family.build(config, codec)
        return model

    def finish(self, text: str) -> str:
        """Answer as a person reads it, from the text that a model wrote."""
        finished: str = self.module.finish(text)
        return finished

    def measure(self, outputs: Sequence[Any], references: Sequence[Any], sources: Sequence[str], config: Any) -> Metrics:
        """Metrics of finished answers."""
        metrics: Metrics = self.module.measure(outputs, references, sources, config)
        return metrics

    def measure_model(self, predictor: Any, examples: Sequence[Any]) -> Mapping[str, Measurement]:
        """Metrics of a model beside those of its answers."""
        metrics: Mapping[str, Measurement] = self.family.measure_model(predictor, examples)
        return metrics
