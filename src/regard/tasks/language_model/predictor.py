"""Predictor of a language model: continues a text, and has its probability."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from regard.data.text.codec import Example
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.logprobs import UndistributedError
from regard.decoding.score import rate
from regard.errors import DataError
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input, split_inputs
from regard.inference.sequence_predictor import Extras, SequencePredictor
from regard.metrics.text import Measurement, Metrics, perplexity

if TYPE_CHECKING:
    from regard.viewer.trace import Trace


class LanguagePredictor(SequencePredictor):
    """Trained language model: an input is the beginning of a text, and the answer the text."""

    reads_source = False

    def continue_inputs(
        self, inputs: Sequence[Input], constraints: Sequence[ConstraintSpec] | None = None
    ) -> list[ConstraintSpec]:
        """Constraints on the answers, each of which begins with its input."""
        records = [self.read(item, number) for number, item in enumerate(inputs, 1)]
        for record in records:
            if not self.codec.is_known(record):
                raise DataError(
                    f"{record.where}: the model cannot continue {record.source!r}, which has a word outside its vocabulary; "
                    "begin with words of its training texts, or train with data.tokenizer=bpe or characters"
                )
        wishes = constraints or [ConstraintSpec()] * len(inputs)
        return [wish._replace(prefix=record.source + wish.prefix) for record, wish in zip(records, wishes, strict=True)]

    def _outcomes(
        self,
        inputs: Sequence[Input],
        beam: int | None,
        best: int,
        extras: Extras,
        constraints: Sequence[ConstraintSpec],
        done: frozenset[int],
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        wishes = self.continue_inputs(inputs, constraints)
        yield from super()._outcomes(inputs, beam, best, extras, wishes, done)

    def stream(
        self,
        source: Input,
        *,
        beam: int | None = None,
        prefix: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> Iterator[str]:
        """Pieces of the text that an input begins, as they are decided."""
        whole = self.read(source).source + (prefix or "")
        return super().stream(source, beam=beam, prefix=whole, include=include, exclude=exclude)

    def trace(
        self,
        inputs: Input | Iterable[Input],
        *,
        beam: int | None = None,
        targets: Sequence[str] | None = None,
        scores: bool = False,
        constraints: Sequence[ConstraintSpec] | None = None,
    ) -> "Trace":
        """Choices of the model while it continues texts, step by step; with `targets`, while these are written."""
        listed = split_inputs(inputs)[1]
        wishes = self.continue_inputs(listed, constraints) if targets is None else constraints
        return super().trace(listed, beam=beam, targets=targets, scores=scores, constraints=wishes)

    def evaluate_examples(self, examples: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """Perplexity of texts, per token and per word; nothing is searched for."""
        metrics: Metrics = dict(self.task.measure_model(self, examples))
        likely = self._perplexity(examples)
        return metrics if likely is None else metrics | {"perplexity": likely}

    def measure_words(self, examples: Sequence[Example]) -> dict[str, Measurement]:
        """Perplexity per word: words are between spaces, and the end of a text counts as one."""
        device, nll, words = next(self.model.parameters()).device, list[float](), list[int]()
        for indices, batch in self._batches(examples):
            if batch.target is None:
                return {}
            with torch.no_grad():
                rated = rate(self.model.decoder, self.model.encode(batch.source.to(device)), batch.target)
            nll += (-rated.scores).tolist()
            words += [len((examples[index].record.target or "").split()) + 1 for index in indices]
        return {"word_perplexity": perplexity(nll, words, unit="word")} if nll else {}
