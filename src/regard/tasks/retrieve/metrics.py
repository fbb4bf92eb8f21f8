"""Retrieval metrics: recall@k and median rank in both directions, with bootstrap intervals."""

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.metrics.retrieval import CUTOFFS, compute_first_rank, compute_recall, count_ties
from regard.metrics.text import Measurement, Metrics, Rows

WAYS = {"text": "pictures", "picture": "texts"}
"""Names of the targets of each direction, and of its queries."""
FIGURES = (
    "recall",
    *(f"{target_name}_{what}" for target_name in WAYS for what in (*(f"recall{k}" for k in CUTOFFS), "rank")),
)
RESAMPLES, LEVEL = 1000, 95.0


def figures(
    to_text: Float[Tensor, "pictures texts"],
    to_picture: Float[Tensor, "texts pictures"],
    right: Bool[Tensor, "pictures texts"],
) -> Metrics:
    """Mean recall, then recall@1, @5, @10 and the median rank of each direction, from the scores of both."""
    measured: Metrics = {}
    values, resamples = list[Rows](), list[Rows]()
    for (target_name, query_name), (scores, good) in zip(
        WAYS.items(), ((to_text, right), (to_picture, right.mT)), strict=True
    ):
        counts = count_ties(scores, good)
        table = np.stack([*(100 * compute_recall(*counts, k) for k in CUTOFFS), compute_first_rank(*counts)], axis=1)
        values.append(_summarise(table))
        resamples.append(_resample(table))
        for column, k in enumerate(CUTOFFS):
            said = f"{query_name} whose {target_name} is among the first {k} of {scores.shape[1]}, in per cent"
            measured[f"{target_name}_recall{k}"] = _with_interval(values[-1][column], resamples[-1][:, column], said)
        measured[f"{target_name}_rank"] = _with_interval(
            values[-1][-1], resamples[-1][:, -1], f"median rank of a {target_name} among {scores.shape[1]}"
        )
    mean = float(np.mean([value[:-1] for value in values]))
    spread = np.mean([resample[:, :-1].mean(1) for resample in resamples], axis=0)
    return {"recall": _with_interval(mean, spread, "mean of the recalls at 1, 5 and 10, both ways"), **measured}


def _summarise(table: Rows) -> Rows:
    """Recalls and median rank of a table with a row for each query."""
    return np.append(table[:, :-1].mean(0), np.median(table[:, -1]))


def _resample(table: Rows) -> Rows:
    """Bootstrap: the summary of queries resampled with replacement."""
    chance = np.random.default_rng(0)
    return np.stack([_summarise(table[chance.integers(len(table), size=len(table))]) for _ in range(RESAMPLES)])


def _with_interval(value: float, resamples: NDArray[np.float64], said: str) -> Measurement:
    edge = (100 - LEVEL) / 2
    low, high = np.percentile(resamples, [edge, 100 - edge])
    return Measurement(float(value), float(low), float(high), said)
