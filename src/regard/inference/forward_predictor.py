"""Predictors whose models answer with one forward pass: classes, boxes, answers to questions, retrieved records.

Each task has one in tasks/<task>/predictor.py, which says how its model is called, how an output is decoded and evaluated,
and what a trace of it holds.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.modality import AnyBatch, OrderedBatches
from regard.decoding.logprobs import UndistributedError
from regard.errors import ConfigError
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input, Predictor, split_inputs
from regard.metrics.text import Metrics

if TYPE_CHECKING:
    from regard.data.axis import Axis
    from regard.viewer.trace import Choice, Trace


class AxisWeights(NamedTuple):
    """Weights of one attention, and the names of its query axis and key axis."""

    query: str
    key: str
    weights: Float[Tensor, "heads queries keys"]


class CachedExamples(NamedTuple):
    """Examples of a validation set, and the loader that has collated them once."""

    examples: Sequence[Any]
    loader: OrderedBatches


class ForwardTrace(NamedTuple):
    """Parts of the trace of one answer: its axes, its attentions by name, and its choices in their order.

    The axis of the places of a picture is called "picture".
    """

    axes: "Mapping[str, Axis]"
    attentions: Mapping[str, AxisWeights]
    choices: "tuple[Choice, ...]" = ()


WRITING = ("beam", "unknown", "prefix", "include", "exclude", "constraints", "stream", "listen", "mark_copied")
"""Options of predict for text generation."""


class ForwardPredictor(Predictor):
    """Trained model that answers with one forward pass."""

    cached: CachedExamples | None = None
    """Validation examples that are evaluated again and again while a model is trained."""

    @abstractmethod
    def forward(self, batch: Any, weights: bool = False) -> Any:
        """Output of the model for a batch, on its device."""

    @abstractmethod
    def decode(self, examples: Sequence[Any], output: Any, best: int, align: bool) -> list[list[Prediction]]:
        """The `best` answers to each example, best first."""

    @abstractmethod
    def trace_parts(self, example: Any, output: Any) -> ForwardTrace:
        """Axes, attentions and choices of the output for one example."""

    def outcomes(
        self, inputs: Sequence[Input], *, best: int = 1, align: bool = False, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The index of each input with its answers, batch after batch, or with the error of one whose scores are not finite.

        The answers to the indices in `done` are known: a batch of nothing else is not computed, and an empty list stands for
        each of its answers. All other batches are those that there would be if nothing were done.
        """
        if self.recorder is not None and inputs:
            self.recorder.take(lambda: self.trace(inputs))
        examples = self.encode(inputs)
        with nullcontext() if self.recorder is None else self.recorder.away():
            yield from self._outcomes(examples, best, align, done)

    def _outcomes(
        self, examples: Sequence[Any], best: int, align: bool, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        for indices, batch in self.batches(examples):
            if done.issuperset(indices):
                yield from ((index, []) for index in indices)
                continue
            output = self.infer(batch, weights=align)
            finite = self.scores(output).flatten(1).isfinite().all(1).tolist()
            if all(finite):
                yield from zip(
                    indices, self.decode([examples[index] for index in indices], output, best, align), strict=True
                )
                continue
            places = [index for index, whole in zip(indices, finite, strict=True) if whole]
            yield from ((index, unscored_error()) for index in indices if index not in places)
            outcomes = self._outcomes([examples[place] for place in places], best, align)
            yield from ((places[row], answers) for row, answers in outcomes)

    def scores(self, output: Any) -> Float[Tensor, "batch *scores"]:
        """Numbers of an output that decide its answer: where one of an example is not finite, it has no answer."""
        logits: Tensor = output.logits
        return logits

    def encode(self, inputs: Sequence[Input]) -> list[Any]:
        """Examples of inputs."""
        records = [self.read(item, number) for number, item in enumerate(inputs, 1)]
        examples: list[Any] = self.codec.encode_all(records, "truncate").examples
        return examples

    def infer(self, batch: AnyBatch, weights: bool = False) -> Any:
        """Output of the model for a batch, without gradients."""
        with torch.no_grad():
            return self.forward(batch.to(next(self.model.parameters()).device), weights)

    def batches(self, examples: Sequence[Any]) -> Iterator[Any]:
        """Every example once, about search.batch_size at a time, with their indices."""
        if self.cached is not None and self.cached.examples is examples:
            yield from self.cached.loader.in_order()
        elif examples:
            yield from self.loader(examples).in_order()

    def loader(self, examples: Sequence[Any]) -> OrderedBatches:
        """Batches of examples, whose pictures are decoded once."""
        count = self.config.search.select_batch_size()
        loader: OrderedBatches = self.codec.loader(examples, self.codec.budget(examples, count))
        return loader

    def check_search_options(self, options: Mapping[str, Any], settings: Sequence[str]) -> None:
        """Raise for options and settings of text generation; of the search, only search.batch_size has an effect."""
        used = [f"--{name.replace('_', '-')}" for name in WRITING if options.get(name)]
        used += [
            f"--{setting.partition('=')[0]}" for setting in settings if setting.partition("=")[0] != "search.batch_size"
        ]
        if used:
            raise ConfigError(
                f"{used[0]} is for models that write text, and this one ({self.name}) writes none; leave it out"
            )

    def evaluate_records(self, prepared: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """Metrics on records that the task has prepared already; `beam` has no effect."""
        return self.evaluate_examples(self.codec.encode_all(prepared, "truncate").examples)

    def find_unscored(self, prepared: Sequence[Any], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """Indices of the prepared records to which the scores are not finite, and their errors."""
        errors = dict[int, UndistributedError]()
        for indices, batch in self.batches(self.codec.encode_all(prepared, "truncate").examples):
            finite = self.scores(self.infer(batch)).flatten(1).isfinite().all(1).tolist()
            errors |= {index: unscored_error() for index, whole in zip(indices, finite, strict=True) if not whole}
        return errors

    def trace(self, inputs: Input | Iterable[Input], **_: Any) -> "Trace":
        """Attention weights, network and choices of the model while it answers one input or several."""
        from regard.inference.forward_trace import trace

        return trace(self, split_inputs(inputs)[1])


def unscored_error() -> UndistributedError:
    """Error of an input whose scores are not finite."""
    return UndistributedError(
        "an answer needs scores that are finite, got NaN or infinity for this input; look for NaN in the model's parameters"
    )
