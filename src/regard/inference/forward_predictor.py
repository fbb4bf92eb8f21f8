"""Models that tell what they see: runs of tasks that write no text, opened and ready to be asked.

Each kind is a file with a class beside this one. It says how the model is asked, what its output means to a person, how good
it is, and what a trace of it shows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard import tasks
from regard.data.image.preprocess import ImageCodec
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.records import Record
from regard.decoding.logprobs import UndistributedError
from regard.inference.prediction import Prediction
from regard.tasks.kinds.types import Figures, Task, TaskConfig

if TYPE_CHECKING:
    from regard.data.axis import Axis
    from regard.viewer.record import Recorder
    from regard.viewer.trace import Choice, Trace


class Glance(NamedTuple):
    """Where one attention looked: the names of its axes, and its weights."""

    query: str
    key: str
    weights: Float[Tensor, "heads queries keys"]


@runtime_checkable
class InOrder(Protocol):
    """Gives every example once, with its place."""

    def in_order(self) -> Iterator[Any]: ...


class Kept(NamedTuple):
    """Examples, and what makes their batches."""

    examples: Sequence[ImageExample]
    loader: InOrder


class Shown(NamedTuple):
    """What a trace shows of one answer: its axes, where each attention looked, by name, and what was decided in which order.

    The places of the picture are the axis called "picture".
    """

    axes: "Mapping[str, Axis]"
    looks: Mapping[str, Glance]
    steps: "tuple[Choice, ...]" = ()


class Seeing(ABC):
    """A model with its codec and its config."""

    def __init__(self, name: str, config: TaskConfig, codec: ImageCodec, model: nn.Module):
        self.name, self.config = name, config
        self.codec: Any = codec
        self.task: Task = tasks.find(name)
        self.model = model.eval()
        self.home: Path | None = None
        """The run directory that it was opened from."""
        self.recorder: Recorder | None = None
        """Who listens to what is predicted, while somebody does."""
        self.kept: Kept | None = None
        """Examples that are asked again and again, as those are by which a training is judged."""

    @abstractmethod
    def ask(self, batch: ImageBatch, weights: bool = False) -> Any:
        """What the model makes of a batch."""

    @abstractmethod
    def told(self, examples: Sequence[ImageExample], output: Any, best: int, align: bool) -> list[list[Prediction]]:
        """What an output says of each of its examples, the `best` answers first."""

    @abstractmethod
    def judge(self, examples: Sequence[ImageExample], *, beam: int | None = None) -> Figures:
        """How good it is on examples whose answers are known; `beam` is for models that write, and counts for nothing."""

    @abstractmethod
    def shown(self, example: ImageExample, output: Any) -> Shown:
        """What a trace shows of the output for one example."""

    def predict(self, inputs: Sequence[str], *, best: int = 1, align: bool = False) -> list[list[Prediction]]:
        """The `best` answers to each input, best first."""
        answers: list[list[Prediction]] = [[] for _ in inputs]
        for index, found in self.each(inputs, best=best, align=align):
            answers[index] = found
        return answers

    def each(self, inputs: Sequence[str], *, best: int = 1, align: bool = False) -> Iterator[tuple[int, list[Prediction]]]:
        """What `predict` gives, as it is found, batch after batch: the place of an input, and its answers."""
        for index, answers in self.outcomes(inputs, best=best, align=align):
            if isinstance(answers, UndistributedError):
                raise UndistributedError(f"input:{index + 1}: {answers}")
            yield index, answers

    def outcomes(
        self, inputs: Sequence[str], *, best: int = 1, align: bool = False, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The place of each input with its answers, batch after batch, or with the error of one whose scores are not finite.

        The answers to the places in `done` are known: a batch of nothing else is not computed, and an empty list stands for
        each of its answers. All other batches are those that there would be if nothing were done.
        """
        if self.recorder is not None and inputs:
            self.recorder.take(lambda: self.trace(inputs))
        examples = self.encoded(inputs)
        with nullcontext() if self.recorder is None else self.recorder.away():
            yield from self._outcomes(examples, best, align, done)

    def _outcomes(
        self, examples: Sequence[ImageExample], best: int, align: bool, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        for indices, batch in self.batches(examples):
            if done.issuperset(indices):
                yield from ((index, []) for index in indices)
                continue
            output = self.asked(batch, weights=align)
            finite = self.scores(output).flatten(1).isfinite().all(1).tolist()
            if all(finite):
                yield from zip(indices, self.told([examples[index] for index in indices], output, best, align), strict=True)
                continue
            places = [index for index, whole in zip(indices, finite, strict=True) if whole]
            yield from ((index, unscored()) for index in indices if index not in places)
            yield from ((places[row], found) for row, found in self._outcomes([examples[at] for at in places], best, align))

    def scores(self, output: Any) -> Float[Tensor, "batch *scores"]:
        """The numbers of an output that say what is answered: all of those of an example are finite, or it has no answer."""
        found: Tensor = output.logits
        return found

    def encoded(self, inputs: Sequence[str]) -> list[ImageExample]:
        """What the codec makes of inputs."""
        records = [self.record(text, number) for number, text in enumerate(inputs, 1)]
        examples: list[ImageExample] = self.codec.encode_all(records, "truncate").examples
        return examples

    def record(self, text: str, number: int = 1) -> Any:
        """What an input is: the path of a picture, unless a kind of model says otherwise."""
        return self.task.prepare(Record(text, None, f"input:{number}"))

    def asked(self, batch: ImageBatch, weights: bool = False) -> Any:
        """What the model makes of a batch, where it computes."""
        with torch.no_grad():
            return self.ask(batch.to(next(self.model.parameters()).device), weights)

    def batches(self, examples: Sequence[ImageExample]) -> Iterator[Any]:
        """Every example once, about as many at a time as the config says, with their places."""
        if self.kept is not None and self.kept.examples is examples:
            yield from self.kept.loader.in_order()
        elif examples:
            yield from self.loader(examples).in_order()

    def loader(self, examples: Sequence[ImageExample]) -> InOrder:
        """Batches of examples, whose pictures are decoded once."""
        found: InOrder = self.codec.loader(examples, self.codec.budget(examples, self.config.search.batch_size))
        return found

    def evaluate(self, records: Sequence[Any], *, beam: int | None = None) -> Figures:
        """The task's measures on records with targets, as a file has them."""
        return self.measure([self.task.prepare(record) for record in records])

    def measure(self, prepared: Sequence[Any], *, beam: int | None = None) -> Figures:
        """The same for records that the task has prepared already."""
        return self.judge(self.codec.encode_all(prepared, "truncate").examples)

    def unscored(self, prepared: Sequence[Any], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """The places of the records that `measure` cannot judge: to which the scores are not finite."""
        errors = dict[int, UndistributedError]()
        for indices, batch in self.batches(self.codec.encode_all(prepared, "truncate").examples):
            finite = self.scores(self.asked(batch)).flatten(1).isfinite().all(1).tolist()
            errors |= {index: unscored() for index, whole in zip(indices, finite, strict=True) if not whole}
        return errors

    def trace(self, inputs: Sequence[str], **_: Any) -> "Trace":
        """Where the model looks while it answers."""
        from regard.viewer.record.image import trace

        return trace(self, inputs)

    def knows(self, text: str) -> bool:
        """Whether there is a picture to read."""
        found: bool = self.codec.is_known(self.record(text))
        return found

    reads = knows


def unscored() -> UndistributedError:
    """The error for an input whose scores are not finite."""
    return UndistributedError(
        "an answer needs scores that are finite, got NaN or infinity for this input; look for NaN in the model's parameters"
    )
