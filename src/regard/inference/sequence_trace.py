"""Trace of a model that decodes step by step: its answers, or targets that are given, with the weights of each attention.

The search comes first, by itself. Then the answer is written once more, all of it known, while a recorder listens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from regard.config import Search
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.copies import find_copies
from regard.decoding.search_tree import SearchTree
from regard.errors import ConfigError
from regard.inference.predictor import Input
from regard.viewer.record import record
from regard.viewer.record.predicted import beams, write
from regard.viewer.record.spelling import Words
from regard.viewer.trace import Example, Graph, Trace

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor

MARKED = 4
"""Answers whose copied words the notes of a trace mark."""


def trace(
    predictor: "SequencePredictor",
    inputs: Sequence[Input],
    *,
    beam: int | None,
    targets: Sequence[str] | None,
    scores: bool,
    constraints: Sequence[ConstraintSpec] | None = None,
) -> Trace:
    """Trace of a model while it answers each input under its constraints, or while it writes the `targets`."""
    examples, graph, costs, marks = list[Example](), Graph(), list[Any](), list[str]()
    for encoded, tree in encode_answers(predictor, inputs, beam, targets, constraints):
        words = Words(predictor.codec_of(encoded))
        recorder = record(predictor.model, scores=scores, graph=not examples)
        example = write(recorder, words, encoded)
        graph = graph if examples else recorder.graph()
        if predictor.copies and len(marks) < MARKED:
            marks.append(mark_copies(predictor, encoded))
        examples.append(example if tree is None else replace(example, beams=beams(tree, words, example)))
        costs.append(recorder.cost)
    notes = [f"{type(costs[0])(*map(sum, zip(*costs, strict=True)))}."]
    notes += [f"Copied from the source, in brackets: {' / '.join(marks)}."] * bool(marks)
    if not any(example.attentions for example in examples):
        notes.append("This model has no attention, so there are only its network and its steps.")
    return Trace(predictor.name, tuple(examples), graph, notes=tuple(notes))


def mark_copies(predictor: "SequencePredictor", encoded: Any) -> str:
    """Answer of an example with what was copied from its source in brackets."""
    source = predictor.codec.collate([encoded]).to(next(predictor.model.parameters()).device)
    with torch.no_grad():
        [copies] = find_copies(predictor.model.decoder, predictor.model.encode(source), [encoded.target])
    marked: str = predictor.codec_of(encoded).mark_copies(encoded.target, [copy[:2] for copy in copies])
    return marked


def encode_answers(
    predictor: "SequencePredictor",
    inputs: Sequence[Input],
    beam: int | None,
    targets: Sequence[str] | None,
    constraints: Sequence[ConstraintSpec] | None,
) -> Iterator[tuple[Any, SearchTree | None]]:
    """Example of each input with its target, the answer of a search or a given one, and the tree of the search."""
    if not inputs:
        raise ValueError("trace needs one input or more, got none")
    if targets is not None and len(targets) != len(inputs):
        raise ValueError(f"trace needs a target for each of {len(inputs)} texts, got {len(targets)}")
    if targets is None:
        check_traceable(predictor.config.search)
    for number, item in enumerate(inputs):
        target = None if targets is None else targets[number]
        encoded = predictor.codec.encode(predictor.read_pair(item, target, number + 1))
        tree = None
        if encoded.target is None:
            wish = ConstraintSpec() if constraints is None else constraints[number]
            tokens, tree = search_answer(predictor, encoded, beam or predictor.config.search.beam, wish)
            encoded = encoded._replace(target=tokens)
        yield encoded, tree


def check_traceable(search: Search) -> None:
    """Raise for a search in a precision that no recorder sees: the trace would be of another computation."""
    if search.precision not in ("auto", "float32"):
        raise ConfigError(
            f"a trace shows what is computed in float32, and search.precision={search.precision} answers by other numbers: "
            "leave one of the two out (--engine onnx --precision int8 gives both)"
        )


def search_answer(
    predictor: "SequencePredictor", encoded: Any, beam: int, wish: ConstraintSpec = ConstraintSpec()
) -> tuple[list[int], SearchTree | None]:
    """Tokens of the best answer, and the tree of the search where there is one."""
    device, source = next(predictor.model.parameters()).device, predictor.codec.collate([encoded])
    with torch.no_grad():
        memory = predictor.encode(source.to(device))
    tree = SearchTree() if beam > 1 else None
    [[best]] = predictor.search(memory, predictor.limits(source), beam, weights=beam > 1, tree=tree, constraints=[wish])
    return best.tokens, tree
