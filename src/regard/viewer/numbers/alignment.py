"""How well heads agree with links between words that people made."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Links = Iterable[tuple[int, int]]


class Gold(NamedTuple):
    """Links that people made, as (query, key): those they were `sure` of, and others that they found `possible`."""

    sure: Links
    possible: Links = ()


def alignment_error(weights: npt.NDArray[Any], gold: Gold) -> npt.NDArray[Any]:
    """The alignment error rate of each head's largest weights, (..., queries, keys), against gold links; 0 is perfect.

        AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)        A: one link per query, to its largest weight; S ⊆ P

    Och and Ney 2003, section 5, https://aclanthology.org/J03-1002/
    A query that reads nothing makes no link.
    """
    queries, keys = weights.shape[-2:]
    sure = _table(gold.sure, queries, keys)
    possible = sure | _table(gold.possible, queries, keys)
    if not sure.any():
        raise ValueError("alignment error needs at least one sure link, got none; give Gold(sure=[(query, key), ...])")
    reads = np.abs(weights).max(-1, keepdims=True) > 0
    links = (np.asarray(weights).argmax(-1)[..., None] == np.arange(keys)) & reads
    agreed = _count(links & sure) + _count(links & possible)
    return np.asarray(1 - agreed / (_count(links) + _count(sure)))


def _table(links: Links, queries: int, keys: int) -> npt.NDArray[Any]:
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
