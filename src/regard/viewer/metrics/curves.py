"""Statistics of attention weights along queries and keys, each with its definition.

Everything takes weights as (..., queries, keys). Shares are |a| / Σ |a|: for weights that sum to one these are the weights,
for others (sigmoid, signed mixtures) they make entropy and positions mean the same, as in `regard.attention.statistics`.
A query that reads nothing, since it may see nothing, has no share anywhere and is left out of every mean.
"""

import unicodedata
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.data.axis import Axis, Image, Text

Array = npt.NDArray[Any]

TINY = np.finfo(np.float64).tiny  # x log x is 0 at 0


def shares(weights: Array) -> Array:
    """|a| / Σ |a|, and zeros for a query that reads nothing."""
    size = np.abs(np.asarray(weights, np.float64))
    total = size.sum(-1, keepdims=True)
    return size / np.where(total > 0, total, 1)


def baseline(allowed: Array | None, queries: int, keys: int) -> Array:
    """Attention that each key receives under uniform attention over the allowed keys.

        baseline_k = Σ_q allowed(q, k) / (number of keys that q may see)

    Queries / keys where all is allowed, H_n - H_k for a causal mask of n places (k from 0, H the harmonic numbers). Where
    only some queries were recorded, `allowed` has the rows of these and nothing else counts.
    """
    if allowed is None:
        return np.full(keys, queries / max(keys, 1))
    visible = np.asarray(allowed, np.float64)
    return (visible / np.maximum(visible.sum(-1, keepdims=True), 1)).sum(-2)


def received(weights: Array, allowed: Array | None = None) -> Array:
    """Attention received by each key, relative to uniform attention; 0 for a key that no query may see.

        received_k = Σ_q a(q, k) / baseline_k

    A column sum: rows of a softmax always sum to one and say nothing. Without the division every causal model would seem
    to forget its latest tokens, which few queries may see.
    """
    total = np.asarray(weights).sum(-2, dtype=np.float64)
    return over(total, baseline(allowed, weights.shape[-2], weights.shape[-1]))


def over(total: Array, base: Array) -> Array:
    """total / base, and 0 where the base is 0."""
    return np.where(base > 0, total / np.where(base > 0, base, 1), 0.0)


def entropy(weights: Array) -> Array:
    """Entropy -Σ p log p of each query, in nats: 0 for a one-hot row, log of the number of keys for a uniform one."""
    size = np.abs(np.asarray(weights, np.float64))
    total = size.sum(-1)
    logs = (size * np.log(np.maximum(size, TINY))).sum(-1)
    return np.maximum(np.log(np.maximum(total, TINY)) - over(logs, total), 0) * (total > 0)


class Sharpness(NamedTuple):
    """Sharpness of each query: its `largest` weight and its effective number of keys, exp(entropy)."""

    largest: Array
    effective: Array


def sharpness(weights: Array) -> Sharpness:
    """Largest weight and effective keys of each query; a query that reads nothing has 0 of both."""
    spread = np.where(reading(weights), np.exp(entropy(weights)), 0.0)
    return Sharpness(np.asarray(weights, np.float64).max(-1), spread)


class Focus(NamedTuple):
    """Mean key position of each query, and the standard deviation around it, its `spread`."""

    mean: Array
    spread: Array


def focus(weights: Array) -> Focus:
    """The mean key position of each query, counted from 0, and its spread."""
    size = np.abs(np.asarray(weights, np.float64))
    places = np.arange(size.shape[-1], dtype=np.float64)
    total = size.sum(-1)
    middle = over(size @ places, total)
    return Focus(middle, np.sqrt(np.maximum(over(size @ places**2, total) - middle**2, 0)))


def sinks(axis: Axis) -> tuple[int, ...]:
    """Keys without content: special tokens, punctuation, positions before a picture's patches.

    The first key is one of them only where it is special itself: the first word of a sentence has content.
    """
    if isinstance(axis, Image):
        return tuple(range(len(axis.prefix)))
    if not isinstance(axis, Text):
        return ()
    marks = {place for place, label in enumerate(axis.labels) if _punctuation(label)}
    return tuple(sorted(marks | set(axis.special)))


def sink(weights: Array, special: tuple[int, ...]) -> Array:
    """The share of each query's attention that lies on the `special` keys, as `sinks` names them."""
    size = np.abs(np.asarray(weights, np.float64))
    return over(size[..., sorted(set(special))].sum(-1), size.sum(-1))


def diagonality(weights: Array) -> Array:
    """Diagonality: 1 for attention on the diagonal, about 1/2 for uniform attention, 0 in the farthest corners.

        1 - mean over queries of  (Σ_k p(q, k) |k - d(q)|) / max_k |k - d(q)|,    d(q) = q (keys - 1) / (queries - 1)

    After Zhang, Loweimi, Bell and Renals 2021, https://arxiv.org/abs/2011.04906, who measure the diagonality of an
    encoder's self-attention; the definition here is this one, for matrices of any shape: d(q) is the place on the line from
    the first query and key to the last ones. With queries that do not fall on a key, a line as straight as can be stays a
    little below 1.
    """
    places = diagonal(*weights.shape[-2:])
    return np.asarray(1 - mean(away(weights, places), reading(weights)))


def away(weights: Array, places: Array) -> Array:
    """Mean distance of each query's attention from its position among the keys; the farthest key has distance 1."""
    far = np.abs(np.arange(weights.shape[-1]) - places[:, None])
    size = np.abs(np.asarray(weights, np.float64))
    return over((size * far).sum(-1), size.sum(-1) * far.max(-1))


def distance(weights: Array) -> Array:
    """Mean of |d(q) - focus(q)|, in keys: distance of the attention from the diagonal."""
    return mean(np.abs(focus(weights).mean - diagonal(*weights.shape[-2:])), reading(weights))


def diagonal(queries: int, keys: int) -> Array:
    """The key position that lies beside each query when both axes are laid out at the same length."""
    return np.arange(queries) * ((keys - 1) / max(queries - 1, 1))


def reading(weights: Array) -> Array:
    """True for queries that read anything."""
    return np.any(weights != 0, axis=-1, keepdims=True)[..., 0]


def mean(values: Array, counted: Array) -> Array:
    """The mean over the last axis of the values that count; 0 where none does."""
    return over(np.asarray(np.where(counted, values, 0).sum(-1)), np.asarray(counted.sum(-1)))


def _punctuation(label: str) -> bool:
    return bool(label.strip()) and all(unicodedata.category(letter)[0] == "P" for letter in label.strip())
