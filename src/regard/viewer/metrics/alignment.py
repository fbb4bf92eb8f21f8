"""Alignment error rate of heads against gold links."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.alignment.links import Gold, Link
from regard.alignment.score import error_rate
from regard.data.axis import Axis, Text
from regard.viewer.trace import AttentionMap, Links

__all__ = ["Gold", "alignment_error", "of_heads"]


def of_heads(attention_map: AttentionMap, axes: Mapping[str, Axis], gold: Links | None) -> npt.NDArray[Any] | None:
    """The alignment error rate of every head, (heads,); None without gold for these axes, or without all of the weights.

    Special tokens are no words: they link nothing and nothing is linked to them, unless the gold links say so.
    """
    if (
        gold is None
        or (attention_map.query, attention_map.key) != (gold.query, gold.key)
        or attention_map.weights is None
        or attention_map.rows is not None
    ):
        return None
    said = (*gold.sure, *gold.possible)
    weights = np.array(attention_map.weights)
    weights[:, sorted(_special(axes[attention_map.query]) - {query for query, _ in said})] = 0
    weights[:, :, sorted(_special(axes[attention_map.key]) - {key for _, key in said})] = 0
    return alignment_error(weights, Gold(gold.sure, gold.possible))


def _special(axis: Axis) -> set[int]:
    return set(axis.special) if isinstance(axis, Text) else set()


def alignment_error(weights: npt.NDArray[Any], gold: Gold) -> npt.NDArray[Any]:
    """The alignment error rate of each head's largest weights, (..., queries, keys), against gold links, (query, key).

    Each query is linked to its largest weight; one that reads nothing makes no link. 0 is perfect.
    """
    queries, keys = weights.shape[-2:]
    sure = _table(gold.sure, queries, keys)
    possible = sure | _table(gold.possible, queries, keys)
    if not sure.any():
        raise ValueError("alignment error needs at least one sure link, got none; give Gold(sure=[(query, key), ...])")
    reads = np.abs(weights).max(-1, keepdims=True) > 0
    links = (np.asarray(weights).argmax(-1)[..., None] == np.arange(keys)) & reads
    agreed = _count(links & sure) + _count(links & possible)
    return np.asarray(error_rate(agreed, _count(links), _count(sure)))


def _table(links: Iterable[Link], queries: int, keys: int) -> npt.NDArray[Any]:
    table = np.zeros((queries, keys), bool)
    for query, key in links:
        if not (0 <= query < queries and 0 <= key < keys):
            raise ValueError(
                f"a gold link joins query {query} and key {key}, but there are {queries} queries and {keys} keys"
            )
        table[query, key] = True
    return table


def _count(links: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(links.sum((-2, -1)))
