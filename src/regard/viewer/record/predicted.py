"""A trained model's answers as a trace: what was read, what was written step by step, and where the model looked.

The search comes first, by itself. Then the answer is written once more, all of it known, while a recorder listens: that is
the same as writing it step by step, and every attention then has one look with a row for each token.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.config import Search
from regard.data.batch import shifted
from regard.data.image.types import ImageExample
from regard.data.table import Record
from regard.data.text.codec import Example as Read
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.logprobs import IMPOSSIBLE, compute_logprobs, mask_special_tokens
from regard.decoding.search_tree import SearchTree
from regard.decoding.topk import select_highest
from regard.errors import ConfigError
from regard.viewer.record import Recorder, record
from regard.viewer.record.spelling import Words, written
from regard.viewer.trace import Beams, Choice, Example, Graph, Trace

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import Trained

Encoded = Read | ImageExample
CANDIDATES = 8
"""How many tokens are shown that could have been written at a step."""


def trace(
    trained: "Trained",
    texts: Sequence[str],
    *,
    beam: int | None,
    targets: Sequence[str] | None,
    scores: bool,
    asked: Sequence[ConstraintSpec] | None = None,
) -> Trace:
    """Where a model looks while it answers each text as `asked`, or while it writes what it is told to."""
    found, graph, costs, words = list[Example](), Graph(), list[Any](), Words(trained.codec)
    for encoded, tree in answered(trained, texts, beam, targets, asked):
        rec = record(trained.model, scores=scores, graph=not found)
        example = write(rec, words, encoded)
        graph = graph if found else rec.graph()
        found.append(example if tree is None else replace(example, beams=beams(tree, words, example)))
        costs.append(rec.cost)
    notes = [f"{type(costs[0])(*map(sum, zip(*costs, strict=True)))}."]
    if not any(example.attentions for example in found):
        notes.append("This model has no attention, so there are only its network and its steps.")
    return Trace(trained.name, tuple(found), graph, notes=tuple(notes))


def answered(
    trained: "Trained",
    texts: Sequence[str],
    beam: int | None,
    targets: Sequence[str] | None,
    asked: Sequence[ConstraintSpec] | None,
) -> Iterator[tuple[Encoded, SearchTree | None]]:
    """Each text with what is written for it, and the tree of the search where there was one."""
    if not texts or isinstance(texts, str):
        raise ValueError(f"trace needs a list of texts, got {texts!r}; one text is [text]")
    if targets is not None and len(targets) != len(texts):
        raise ValueError(f"trace needs a target for each of {len(texts)} texts, got {len(targets)}")
    if targets is None:
        watched(trained.config.search)
    for number, text in enumerate(texts):
        target = None if targets is None else targets[number]
        encoded = trained.codec.encode(trained.task.prepare(Record(text, target, f"input:{number + 1}")))
        tree = None
        if encoded.target is None:
            wish = ConstraintSpec() if asked is None else asked[number]
            tokens, tree = answer(trained, encoded, beam or trained.config.search.beam, wish)
            encoded = encoded._replace(target=tokens)
        yield encoded, tree


def watched(search: Search) -> None:
    """Raise for a search in numbers that no recorder sees: it would show another computation than the one that answered."""
    if search.precision != "float32":
        raise ConfigError(
            f"a trace shows what is computed in float32, and search.precision={search.precision} answers by other numbers: "
            "leave one of the two out (--engine onnx --precision int8 gives both)"
        )


def answer(
    trained: "Trained", encoded: Encoded, beams: int, wish: ConstraintSpec = ConstraintSpec()
) -> tuple[list[int], SearchTree | None]:
    """The tokens of the best answer, and the tree of the search where there is one."""
    device, source = next(trained.model.parameters()).device, trained.codec.collate([encoded])
    with torch.no_grad():
        memory = trained.model.encode(source.to(device))
    tree = SearchTree() if beams > 1 else None
    [[found]] = trained.search(memory, trained.limits(source), beams, weights=beams > 1, tree=tree, asked=[wish])
    return found.tokens, tree


def write(rec: Recorder, words: Words, encoded: Encoded) -> Example:
    """Write a target that is known while a recorder listens: one example with its axes, looks and steps."""
    assert encoded.target is not None, "what is written is known"
    device = next(rec.model.parameters()).device
    target = torch.tensor([encoded.target], device=device)
    with rec, torch.no_grad():
        step = rec.model(words.codec.collate([encoded]).to(device), shifted(target))
    return described(rec, words, encoded, choices(words, encoded.target, step.output[0]))


def described(rec: Recorder, words: Words, encoded: Encoded, steps: Sequence[Choice] = ()) -> Example:
    """The one example that a recorder has heard, with the words that its axes stand for."""
    assert encoded.target is not None, "what was written is known"
    source, target = words.read(encoded), words.answered(encoded.target)
    axes = {"source": source, "target": target, "written": written(target)}
    [example] = rec.examples(axes=axes) or [Example({}, ())]
    used = {name: axis for name, axis in axes.items() if name in example.axes or name != "written"}
    return replace(example, axes={**used, **example.axes}, steps=tuple(steps), title=encoded.record.source)


def choices(words: Words, tokens: Sequence[int], output: Tensor) -> list[Choice]:
    """Each token that was written, how likely it was, and what else could have been."""
    logs = compute_logprobs(output)
    values, places = (each.tolist() for each in select_highest(mask_special_tokens(logs), CANDIDATES))
    found = []
    for step, token in enumerate(tokens):
        pairs = zip(places[step], values[step], strict=True)
        others = [(words.label(place), value) for place, value in pairs if value > IMPOSSIBLE]
        found.append(Choice(step, words.label(token), float(logs[step, token]), tuple(others)))
    return found


def beams(tree: SearchTree, words: Words, example: Example) -> Beams | None:
    """The tree of a search as arrays: rows that are nobody's have the parent -1."""
    if tree.best is None:
        return None
    width = max(len(level.tokens) for level in tree.levels)
    shape = len(tree.levels), width
    parents, found, ended = np.full(shape, -1, np.int32), np.zeros(shape, np.float32), np.zeros(shape, bool)
    tokens = []
    for step, level in enumerate(tree.levels):
        count = len(level.tokens)
        parents[step, :count], found[step, :count], ended[step, :count] = level.parents, level.scores, level.ended
        tokens.append((*(words.label(token) for token in level.tokens), *[""] * (width - count)))
    name = next(
        (
            attention_map.name
            for attention_map in reversed(example.attentions)
            if is_cross_attention(attention_map.name) and attention_map.key == "source"
        ),
        None,
    )
    name = None if name is None or name not in tree.levels[0].weights else name
    weights = None
    if name is not None:
        keys = len(example.axes["source"])
        weights = np.zeros((*shape, keys), np.float16)
        for step, level in enumerate(tree.levels):
            looked = level.weights[name].float().mean(1).cpu().numpy()[:, :keys]
            weights[step, : len(level.parents)] = looked[level.parents]
    return Beams(parents, tuple(tokens), found, ended, tree.best, name, weights)
