"""Other matrices of an attention than its weights: scores, weights times the length of what was read, rollout and flow.

Rollout and flow follow attention through the layers below; flow, whose cost grows fastest, for short axes alone.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from regard.data.axis import Array
from regard.viewer.metrics import flow, matrices, rollout
from regard.viewer.metrics.matrices import MEAN
from regard.viewer.metrics.quantise import quantise
from regard.viewer.trace import AttentionMap, Example

ROLLED = 1024
"""The longest axis for which a page computes rollout."""
FLOWED = 24
"""The longest axis for which a page computes flow."""


class View(NamedTuple):
    """A matrix of some kind for a head, "mean" or its number; `size` is in bytes."""

    kind: str
    head: str
    size: int


def views(example: Example, attention_map: AttentionMap) -> Iterator[tuple[View, Callable[[], Array]]]:
    """Every other matrix that a look has, and how to make it: scores in float16, the rest in bytes of their maximum."""
    queries, keys = len(example.axes[attention_map.query]), len(example.axes[attention_map.key])
    heads = [] if attention_map.weights is None else [*range(attention_map.weights.shape[0]), MEAN]
    for head in heads if attention_map.scores is not None and attention_map.rows is None else []:
        yield View("scores", _name(head), 2 * queries * keys), partial(_scores, attention_map, head)
    for head in heads if attention_map.values is not None else []:
        yield View("values", _name(head), queries * keys), partial(_valued, example, attention_map, head)
    between = {attention_map.query, attention_map.key}
    below = [attention for attention in example.attentions if {attention.query, attention.key} <= between]
    if any(layer.weights is None or layer.rows is not None for layer in below):
        return
    if max(queries, keys) <= ROLLED:
        yield View("rollout", "mean", queries * keys), partial(_through, rollout.traced, example, attention_map)
    if max(queries, keys) <= FLOWED:
        yield View("flow", "mean", queries * keys), partial(_through, flow.traced, example, attention_map)


def _through(follow: Callable[[Example, AttentionMap], Array], example: Example, attention_map: AttentionMap) -> Array:
    return _strongest_is_one(follow(example, attention_map))


def _name(head: int) -> str:
    return "mean" if head == MEAN else str(head)


def _scores(attention_map: AttentionMap, head: int) -> Array:
    """Scores; where a query may not look there is none, and the page gets the smallest that float16 has."""
    assert attention_map.scores is not None, "they were looked for"
    scores = attention_map.scores.astype(np.float32)
    ends = np.finfo(np.float16)
    return np.clip(scores.mean(0) if head == MEAN else scores[head], ends.min, ends.max).astype(np.float16)


def _valued(example: Example, attention_map: AttentionMap, head: int) -> Array:
    """|a| times the length of the value that it reads."""
    assert attention_map.values is not None, "they were looked for"
    assert attention_map.weights is not None, "they were looked for"
    lengths = attention_map.values.astype(np.float32)
    chosen = range(attention_map.weights.shape[0]) if head == MEAN else [head]
    return _strongest_is_one(sum(np.abs(matrices.matrix(example, attention_map, head)) * lengths[head] for head in chosen))


def _strongest_is_one(matrix: Array) -> Array:
    return quantise(matrix, max(float(matrix.max(initial=0.0)), 1e-30))
