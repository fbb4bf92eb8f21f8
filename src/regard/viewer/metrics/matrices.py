"""One matrix of an attention, as pages and servers want it: a head or the mean of all, every query a row."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from regard.data.axis import Array
from regard.viewer.metrics.quantise import Bytes, farthest, quantise, quantise_signed, reduce, scale_of, signed_bytes
from regard.viewer.trace import AttentionMap, Example, Frame

MEAN = -1
"""The number of the mean of all heads."""


def matrix(example: Example, attention_map: AttentionMap, head: int, place: Any = np.s_[:, :]) -> Array:
    """The weights of a head, (queries, keys), or a part of them; queries that were not recorded have zeros.

    A head comes in the precision it was recorded in, the mean of several in float32.
    """
    if attention_map.weights is None:
        raise ValueError(
            f"of {attention_map.name} only statistics were recorded, so there is no matrix; record(model, weights=True)"
        )
    if attention_map.rows is None:
        return _head(attention_map.weights[(slice(None), *place)] if head == MEAN else attention_map.weights[head][place])
    return np.asarray(
        every_row(example, attention_map, _head(attention_map.weights if head == MEAN else attention_map.weights[head]))[
            place
        ]
    )


def every_row(example: Example, attention_map: AttentionMap, weights: Array) -> Array:
    """Weights of the recorded queries, (..., rows, keys), among zeros for all others, (..., queries, keys)."""
    if attention_map.rows is None:
        return weights
    whole = np.zeros((*weights.shape[:-2], len(example.axes[attention_map.query]), weights.shape[-1]), weights.dtype)
    whole[..., list(attention_map.rows), :] = weights
    return whole


def scale(attention_map: AttentionMap, film: Iterable[Frame] = ()) -> float:
    """The weight that the strongest colour stands for: 1, or the largest where weights go beyond it, in a `film` too."""
    if attention_map.sums_to_one:
        return 1.0
    return max((max(scale_of(weights), scale_of(-weights)) for weights in _all(attention_map, film)), default=1.0)


def signed(attention_map: AttentionMap, film: Iterable[Frame] = ()) -> bool:
    """True where a weight is negative, as in a difference of two softmaxes."""
    return not attention_map.sums_to_one and any(bool((weights < 0).any()) for weights in _all(attention_map, film))


def in_bytes(weights: Array, scale: float, signed: bool) -> Bytes:
    """Weights in 8 bits: from 0 up, or either way from 128 where some are negative."""
    return quantise_signed(weights, scale) if signed else quantise(weights, scale)


def reduce_bytes(cells: Bytes, rows: int, columns: int, signed: bool) -> Bytes:
    """At most so many rows and columns by maximum; of signed cells the one farthest from 0."""
    return signed_bytes(reduce(farthest(cells), rows, columns)) if signed else reduce(cells, rows, columns)


def _all(attention_map: AttentionMap, film: Iterable[Frame]) -> list[Array]:
    weights = (attention_map.weights, *(frame.weights.get(attention_map.name) for frame in film))
    return [array for array in weights if array is not None]


def _head(weights: Array) -> Array:
    """The mean where there are several."""
    if weights.ndim == 2:
        return weights
    return np.asarray(weights[0] if len(weights) == 1 else weights.mean(0, dtype=np.float32))
