"""One matrix of an attention, as pages and servers want it: a head or the mean of all, every query a row."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from regard.data.axis import Array
from regard.viewer.metrics.quantise import scale_of
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
    matrices = (attention_map.weights, *(frame.weights.get(attention_map.name) for frame in film))
    return max((scale_of(weights) for weights in matrices if weights is not None), default=1.0)


def _head(weights: Array) -> Array:
    """The mean where there are several."""
    if weights.ndim == 2:
        return weights
    return np.asarray(weights[0] if len(weights) == 1 else weights.mean(0, dtype=np.float32))
