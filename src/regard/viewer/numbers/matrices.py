"""One matrix of an attention, as pages and servers want it: a head or the mean of all, every query a row."""

from typing import Any

import numpy as np

from regard.viewer.axes import Array
from regard.viewer.trace import Example, Look

MEAN = -1
"""The number of the mean of all heads."""


def matrix(example: Example, look: Look, head: int, place: Any = np.s_[:, :]) -> Array:
    """The weights of a head, (queries, keys), or a part of them; queries that were not recorded have zeros.

    A head comes in the precision it was recorded in, the mean of several in float32.
    """
    if look.weights is None:
        raise ValueError(f"of {look.name} only statistics were recorded, so there is no matrix; record(model, weights=True)")
    if look.rows is None:
        return _head(look.weights[(slice(None), *place)] if head == MEAN else look.weights[head][place])
    rows, columns = place
    whole = np.zeros((len(example.axes[look.query]), look.weights.shape[2]), np.float32)
    whole[list(look.rows)] = _head(look.weights if head == MEAN else look.weights[head])
    return np.asarray(whole[rows, columns])


def scale(look: Look) -> float:
    """The weight that the strongest colour stands for: 1, or the largest where weights go beyond it."""
    if look.sums_to_one or look.weights is None or not look.weights.size:
        return 1.0
    return max(1.0, float(look.weights.max()))


def _head(weights: Array) -> Array:
    """The mean where there are several."""
    if weights.ndim == 2:
        return weights
    return np.asarray(weights[0] if len(weights) == 1 else weights.mean(0, dtype=np.float32))
