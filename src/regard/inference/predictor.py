"""Predictor: base of the classes that predict, stream, trace and evaluate with a trained model of any task."""

import difflib
import inspect
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, cast, overload, runtime_checkable

from torch import nn

from regard import registry
from regard.data.records import Record
from regard.decoding.logprobs import UndistributedError
from regard.errors import ConfigError, DataWarning
from regard.inference.prediction import Prediction
from regard.metrics.text import Metrics

if TYPE_CHECKING:
    from regard.viewer.record import Recorder
    from regard.viewer.trace import Trace


@runtime_checkable
class Located(Protocol):
    """Record of a task, such as `Record` of texts and pictures: it has the place that it was read from."""

    @property
    def where(self) -> str: ...


Input: TypeAlias = str | os.PathLike[str] | Located
"""One input as it is given: a text, the path of a picture, or a record of the task."""


@runtime_checkable
class PredictorTask(Protocol):
    """Task of a predictor: how it prepares records and reads tables. `inference/load.py` hands it in."""

    @property
    def name(self) -> str: ...

    def prepare(self, record: Any) -> Any:
        """Record in the form in which the model reads it."""

    def read(self, data: Any, path: str) -> list[Any]:
        """Records of a table, whose columns the settings `data` name."""

    def build(self, config: Any, codec: Any) -> nn.Module:
        """Model of a config, for the vocabularies of a codec."""


class Predictor(ABC):
    """Trained model with its codec and its config: `regard.load` opens one.

    predictor = regard.load("runs/demo")
    predictor.predict("Tom chases Jerry")                  a Prediction
    predictor.predict(["Tom", "Jerry"])                    a list of them, one for each input
    predictor.predict("Tom chases Jerry", best=3)          the 3 best, best first
    predictor.stream("Tom chases Jerry")                   pieces of the answer as they are decided
    predictor.trace("Tom chases Jerry")                    attention weights, for regard.view
    predictor.evaluate("test.tsv")                         metrics on a table
    """

    searches: ClassVar[bool] = False
    """True if answers are decoded by a search."""
    output_suffix: ClassVar[str | None] = None
    """Suffix of the files that the codec writes answers to, one for each; None where an answer is lines of text."""

    def __init__(self, task: PredictorTask, config: Any, codec: Any, model: nn.Module):
        self.task: Any = task
        self.config, self.codec = config, codec
        self.model: Any = model.eval()
        self.home: Path | None = None
        """Run directory that it was loaded from."""
        self.recorder: Recorder | None = None
        """Recorder that traces every prediction, inside `with regard.record(predictor)`."""

    @property
    def name(self) -> str:
        """Name of the task."""
        return cast(str, self.task.name)

    @overload
    def predict(
        self, inputs: str | os.PathLike[str], *, best: None = None, align: bool = False, **options: Any
    ) -> Prediction: ...

    @overload
    def predict(self, inputs: Located, *, best: None = None, align: bool = False, **options: Any) -> Prediction: ...

    @overload
    def predict(self, inputs: Input, *, best: int, align: bool = False, **options: Any) -> list[Prediction]: ...

    @overload
    def predict(
        self, inputs: Iterable[Input], *, best: None = None, align: bool = False, **options: Any
    ) -> list[Prediction]: ...

    @overload
    def predict(
        self, inputs: Iterable[Input], *, best: int, align: bool = False, **options: Any
    ) -> list[list[Prediction]]: ...

    def predict(
        self, inputs: Input | Iterable[Input], *, best: int | None = None, align: bool = False, **options: Any
    ) -> Prediction | list[Prediction] | list[list[Prediction]]:
        """Prediction of one input; of several inputs, a list with one for each.

        An input is a text, the path of a picture (of vqa, PATH TAB QUESTION), or a record of the task. With `best=n` each
        has a list of its n best answers, best first. `align=True` adds attention weights. `options` are those of the kind
        of predictor: `outcomes` lists them.
        """
        if best is not None and best < 1:
            raise ValueError(f"best needs to be 1 or more, got {best}")
        self._check_options(options)
        single, sources = split_inputs(inputs)
        self._warn_of_guesses(sources)
        answers: list[list[Prediction]] = [[] for _ in sources]
        for index, predictions in self.predict_unordered(sources, best=best or 1, align=align, **options):
            answers[index] = predictions
        if best is not None:
            return answers[0] if single else answers
        return answers[0][0] if single else [predictions[0] for predictions in answers]

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Raise for an option that this predictor has not."""
        known = [name for name in inspect.signature(self.outcomes).parameters if name not in ("inputs", "args", "options")]
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                advice = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
                raise TypeError(f"predict has no option {name} for a model of the task {self.name}; {advice}")

    def _warn_of_guesses(self, sources: Sequence[Input]) -> None:
        """Warn of texts whose answer is a guess: the model knows nothing in them, or reads their beginning alone."""
        if self.codec.reads_files:
            return
        doubtful = [number for number, source in enumerate(sources, 1) if not self.fits(source)]
        if doubtful:
            first = doubtful[0]
            reason, answer = "has nothing in it that the model knows", "its answer is a guess"
            if self.is_known(sources[first - 1]):
                most = self.codec.max_source_length - 1
                reason, answer = (
                    f"has more than the {most} tokens that the model reads",
                    "its beginning alone is answered",
                )
            more = f" ({len(doubtful):,} inputs are unknown or too long in all)" * (len(doubtful) > 1)
            warnings.warn(f"input:{first} {reason}, and {answer}{more}", DataWarning, stacklevel=3)

    def predict_unordered(
        self, inputs: Sequence[Input], *, best: int = 1, align: bool = False, **options: Any
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """The index of each input with its `best` answers, batch after batch, as they are computed."""
        for index, answers in self.outcomes(inputs, best=best, align=align, **options):
            if isinstance(answers, UndistributedError):
                raise UndistributedError(f"input:{index + 1}: {answers}")
            yield index, answers

    @abstractmethod
    def outcomes(
        self, inputs: Sequence[Input], *args: Any, **options: Any
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The index of each input with its answers, batch after batch, or with the error of one whose scores are not finite.

        The answers to the indices in the option `done` are known: a batch of nothing else is not computed, and an empty list
        stands for each of its answers. All other batches are those that there would be if nothing were done.
        """

    def stream(self, source: Input, *args: Any, **options: Any) -> Iterator[str]:
        """Pieces of the answer to one input, each as soon as it is final; joined, they are the text of `predict`.

        The answer of a model that does not decode step by step is one piece.
        """
        if text := self.predict(cast(str, source), *args, **options).text:
            yield text

    @abstractmethod
    def trace(self, inputs: Input | Iterable[Input], *args: Any, **options: Any) -> "Trace":
        """Attention weights, network and choices of the model while it answers one input or several."""

    def evaluate(
        self, records: str | os.PathLike[str] | Iterable[Any], *, beam: int | None = None, **columns: str
    ) -> Metrics:
        """Metrics of the task by name: on a table by its path, which is read as `regard evaluate` does, or on records.

        `columns` name columns of the table where they differ from those of training: source="en", target="de".
        """
        if isinstance(records, (str, os.PathLike)):
            return self.evaluate_records(self.read_table(records, **columns), beam=beam)
        if columns:
            raise ConfigError(
                f"{', '.join(columns)} name columns of a table, and records have none; give the path of a table"
            )
        return self.evaluate_records([self.task.prepare(record) for record in records], beam=beam)

    def read_table(self, path: str | os.PathLike[str], **columns: str) -> list[Any]:
        """Prepared records of a table."""
        data = self.config.data
        if unknown := columns.keys() - set(data.columns):
            raise ConfigError(f"{min(unknown)} is no column of {self.name}; it has {' and '.join(data.columns)}")
        return [self.task.prepare(record) for record in self.task.read(replace(data, **columns), os.fspath(path))]

    @abstractmethod
    def evaluate_records(self, prepared: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """Metrics on records that the task has prepared already."""

    @abstractmethod
    def evaluate_examples(self, examples: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """Metrics on examples that the codec has encoded."""

    @abstractmethod
    def find_unscored(self, prepared: Sequence[Any], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """Indices of the prepared records that cannot be evaluated, as their scores are not finite, and their errors."""

    def read(self, source: Input, number: int = 1) -> Any:
        """Prepared record of an input; `number` is its place, for messages."""
        if isinstance(source, (str, os.PathLike)):
            return self.parse(os.fspath(source), number)
        if isinstance(source, Located):
            return self.task.prepare(self.strip_target(source))
        raise TypeError(f"an input is a text, a path or a record, got {type(source).__name__} at input:{number}")

    def parse(self, text: str, number: int) -> Any:
        """Prepared record of an input as it is typed."""
        return self.task.prepare(Record(text, None, f"input:{number}"))

    def complete(self, text: str, number: int = 1) -> str:
        """Input with what an option of the task adds to it, such as the question about every picture."""
        return text

    def set_options(self, options: Mapping[str, str]) -> None:
        """Set options that the task declares for commands, by name; raises for those of other tasks."""
        for name, value in options.items():
            setter = getattr(self, f"set_{name}", None)
            if setter is None:
                models = next(option.models for option in registry.task_options() if option.name == name)
                raise ConfigError(f"--{name} is for {models}, and this one ({self.name}) takes none; leave it out")
            setter(value)

    def check_search_options(self, options: Mapping[str, Any], settings: Sequence[str]) -> None:
        """Raise for options and settings of text generation where the model writes no text."""

    def check_traceable(self) -> None:
        """Raise where a trace cannot show the precision of the search."""

    def strip_target(self, record: Any) -> Any:
        """Record without its target, which its prediction must not read."""
        return record._replace(target=None)

    def is_known(self, source: Input) -> bool:
        """False where the model has seen nothing in an input, so that an answer would be a guess."""
        known: bool = self.codec.is_known(self.read(source))
        return known

    def fits(self, source: Input) -> bool:
        """True if an input is known and not longer than what the model reads."""
        fitting: bool = self.codec.fits(self.read(source))
        return fitting


def split_inputs(inputs: Input | Iterable[Input]) -> tuple[bool, list[Input]]:
    """True and a list of one for a single input, else False and the list of all."""
    if isinstance(inputs, (str, os.PathLike, Located)):
        return True, [inputs]
    if not isinstance(inputs, Iterable):
        raise TypeError(f"an input is a text, a path or a record, got {type(inputs).__name__}; several are a list of them")
    return False, list(inputs)


def text_of(source: Input) -> str:
    """Text of an input: a text or path as it is, or the source of a record."""
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "source", source))
