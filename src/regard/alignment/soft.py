"""Soft alignments: what every attention over the source looked at while a target was written."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.alignment import words
from regard.alignment.posterior import posterior
from regard.alignment.words import Units
from regard.data.batch import Batch
from regard.data.loader import Loader
from regard.data.special_tokens import EOS
from regard.data.table import Record
from regard.data.text.codec import Example

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import Trained


class Soft(NamedTuple):
    """The weights of one pair by attention: a row for each token of the target, a column for each of the source.

    Both end with EOS. `source` and `target` say which words the tokens make up, for `units.merge`.
    """

    source: Units
    target: Units
    weights: dict[str, Float[Tensor, "heads target source"]]


def soft(trained: "Trained", records: Sequence[Record], *, tokens: bool = False, beam: int | None = None) -> list[Soft]:
    """Where a model looks while it is made to write each target, or, where a record has none, its own best answer.

    `tokens` takes each token as a unit where words are usual.
    """
    codec = trained.text_codec("regard align")
    prepared = [trained.task.prepare(record) for record in records]
    examples = codec.encode_all(prepared, over_long="truncate").examples
    free = [place for place, example in enumerate(examples) if example.target is None]
    for place, numbers in zip(free, _answers(trained, [examples[place] for place in free], beam), strict=True):
        examples[place] = examples[place]._replace(target=numbers)
    found: list[Soft] = [Soft(*_empty(), {}) for _ in examples]
    for place, weights in _taught(trained, examples):
        record, written = prepared[place], examples[place].target or []
        given = record.target is not None
        side = words.target(codec, record, tokens) if given else words.answer(codec, written, tokens)
        found[place] = Soft(words.source(codec, record, tokens), side, weights)
    return found


def _empty() -> tuple[Units, Units]:
    nothing = Units((), torch.zeros(0, 0, dtype=torch.bool))
    return nothing, nothing


def _answers(trained: "Trained", examples: list[Example], beam: int | None) -> list[list[int]]:
    """The best answers; one that was cut off gets its EOS, so that its last token has a step after it."""
    found: list[list[int]] = [[] for _ in examples]
    for indices, batch in _batches(trained, examples):
        with torch.no_grad():
            memory = trained.model.encode(batch.source)
        lengths = [trained.longest(int(length)) for length in batch.source.keep.sum(1)]
        answers = trained.search(memory, lengths, beam or trained.config.search.beam)
        for place, [best, *_] in zip(indices, answers, strict=True):
            found[place] = best.tokens if best.tokens[-1:] == [EOS] else [*best.tokens, EOS]
    return found


def _taught(trained: "Trained", examples: list[Example]) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The weights of every example, in any order, cut to its own length."""
    for indices, batch in _batches(trained, examples):
        assert batch.target is not None, "every example has one by now"
        over = posterior(trained.model, batch)
        for row, place in enumerate(indices):
            rows, keys = len(examples[place].target or ()), len(examples[place].source)
            yield place, {name: each[row, :, :rows, :keys].float().cpu() for name, each in over.items()}


def _batches(trained: "Trained", examples: list[Example]) -> Iterator[tuple[list[int], Batch]]:
    device = next(trained.model.parameters()).device
    for indices, batch in Loader(examples, trained.config.data.batch_tokens, shuffle=False).in_order() if examples else ():
        yield indices, batch.to(device)
