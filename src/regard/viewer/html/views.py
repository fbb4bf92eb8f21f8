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
from regard.viewer.trace import Example, Look

ROLLED = 1024
"""The longest axis for which a page computes rollout."""
FLOWED = 24
"""The longest axis for which a page computes flow."""


class View(NamedTuple):
    """A matrix of some kind for a head, "mean" or its number; `size` is in bytes."""

    kind: str
    head: str
    size: int


def views(example: Example, look: Look) -> Iterator[tuple[View, Callable[[], Array]]]:
    """Every other matrix that a look has, and how to make it: scores in float16, the rest in bytes of their maximum."""
    queries, keys = len(example.axes[look.query]), len(example.axes[look.key])
    heads = [] if look.weights is None else [*range(look.weights.shape[0]), MEAN]
    for head in heads if look.scores is not None and look.rows is None else []:
        yield View("scores", _name(head), 2 * queries * keys), partial(_scores, look, head)
    for head in heads if look.values is not None else []:
        yield View("values", _name(head), queries * keys), partial(_valued, example, look, head)
    between = {look.query, look.key}
    below = [each for each in example.looks if {each.query, each.key} <= between]
    if any(each.weights is None or each.rows is not None for each in below):
        return
    if max(queries, keys) <= ROLLED:
        yield View("rollout", "mean", queries * keys), partial(_through, rollout.traced, example, look)
    if max(queries, keys) <= FLOWED:
        yield View("flow", "mean", queries * keys), partial(_through, flow.traced, example, look)


def _through(follow: Callable[[Example, Look], Array], example: Example, look: Look) -> Array:
    return _strongest_is_one(follow(example, look))


def _name(head: int) -> str:
    return "mean" if head == MEAN else str(head)


def _scores(look: Look, head: int) -> Array:
    """Scores; where a query may not look there is none, and the page gets the smallest that float16 has."""
    assert look.scores is not None, "they were looked for"
    scores = look.scores.astype(np.float32)
    ends = np.finfo(np.float16)
    return np.clip(scores.mean(0) if head == MEAN else scores[head], ends.min, ends.max).astype(np.float16)


def _valued(example: Example, look: Look, head: int) -> Array:
    """|a| times the length of the value that it reads."""
    assert look.values is not None, "they were looked for"
    assert look.weights is not None, "they were looked for"
    lengths = look.values.astype(np.float32)
    chosen = range(look.weights.shape[0]) if head == MEAN else [head]
    return _strongest_is_one(sum(np.abs(matrices.matrix(example, look, each)) * lengths[each] for each in chosen))


def _strongest_is_one(matrix: Array) -> Array:
    return quantise(matrix, max(float(matrix.max(initial=0.0)), 1e-30))
