"""Trace of a known target by teacher forcing: axes, attentions and candidates from one forward pass of the decoder.

It equals step-by-step decoding, and gives every attention one map with a row for each token.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batch import shifted
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.logprobs import IMPOSSIBLE, compute_logprobs, mask_special_tokens
from regard.decoding.search_tree import SearchTree
from regard.decoding.topk import select_highest
from regard.viewer.record import Recorder
from regard.viewer.record.spelling import Words, written
from regard.viewer.trace import Beams, Choice, Example

CANDIDATES = 8
"""Number of candidate tokens shown for each step."""


def write(rec: Recorder, words: Words, encoded: Any) -> Example:
    """Record one forward pass over a known target: one example with its axes, attentions and steps."""
    assert encoded.target is not None, "what is written is known"
    device = next(rec.model.parameters()).device
    target = torch.tensor([encoded.target], device=device)
    with rec, torch.no_grad():
        step = rec.model(words.codec.collate([encoded]).to(device), shifted(target))
    return described(rec, words, encoded, choices(words, encoded.target, step.output[0]))


def described(rec: Recorder, words: Words, encoded: Any, steps: Sequence[Choice] = ()) -> Example:
    """The one example that a recorder has heard, with the words that its axes stand for."""
    assert encoded.target is not None, "what was written is known"
    source, target = words.read(encoded), words.answered(encoded.target)
    axes = {"source": source, "target": target, "written": written(target)}
    [example] = rec.examples(axes=axes) or [Example({}, ())]
    used = {name: axis for name, axis in axes.items() if name in example.axes or name != "written"}
    return replace(example, axes={**used, **example.axes}, steps=tuple(steps), title=encoded.record.source)


def choices(words: Words, tokens: Sequence[int], output: Tensor) -> list[Choice]:
    """Tokens of the target with their log-probabilities, and the most probable candidates of each step."""
    logs = compute_logprobs(output)
    values, places = (tensor.tolist() for tensor in select_highest(mask_special_tokens(logs), CANDIDATES))
    steps = []
    for step, token in enumerate(tokens):
        pairs = zip(places[step], values[step], strict=True)
        others = [(words.label(place), value) for place, value in pairs if value > IMPOSSIBLE]
        steps.append(Choice(step, words.label(token), float(logs[step, token]), tuple(others)))
    return steps


def beams(tree: SearchTree, words: Words, example: Example) -> Beams | None:
    """Beams of a search as arrays; unused rows have the parent -1."""
    if tree.best is None:
        return None
    width = max(len(level.tokens) for level in tree.levels)
    shape = len(tree.levels), width
    parents, scores, ended = np.full(shape, -1, np.int32), np.zeros(shape, np.float32), np.zeros(shape, bool)
    tokens = []
    for step, level in enumerate(tree.levels):
        count = len(level.tokens)
        parents[step, :count], scores[step, :count], ended[step, :count] = level.parents, level.scores, level.ended
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
            rows = level.weights[name].float().mean(1).cpu().numpy()[:, :keys]
            weights[step, : len(level.parents)] = rows[level.parents]
    return Beams(parents, tuple(tokens), scores, ended, tree.best, name, weights)
