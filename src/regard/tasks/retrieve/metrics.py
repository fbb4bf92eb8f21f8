"""How far up a search finds what belongs to its question, both ways, with intervals."""

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.metrics.retrieval import CUTOFFS, compute_first_rank, compute_recall, count_ties
from regard.metrics.text import Measurement, Metrics, Rows

WAYS = {"text": "pictures", "picture": "texts"}
"""What is looked for, and what is asked with."""
FIGURES = ("recall", *(f"{way}_{what}" for way in WAYS for what in (*(f"recall{k}" for k in CUTOFFS), "rank")))
RESAMPLES, LEVEL = 1000, 95.0


def figures(
    to_text: Float[Tensor, "pictures texts"],
    to_picture: Float[Tensor, "texts pictures"],
    right: Bool[Tensor, "pictures texts"],
) -> Metrics:
    """The mean of all recalls, then the recall at 1, 5 and 10 and the median rank of each way, from the scores of both."""
    found: Metrics = {}
    values, drawn = list[Rows](), list[Rows]()
    for (way, asked), (scores, good) in zip(WAYS.items(), ((to_text, right), (to_picture, right.mT)), strict=True):
        counts = count_ties(scores, good)
        table = np.stack([*(100 * compute_recall(*counts, k) for k in CUTOFFS), compute_first_rank(*counts)], axis=1)
        values.append(_judged(table))
        drawn.append(_again(table))
        for column, k in enumerate(CUTOFFS):
            said = f"{asked} whose {way} is among the first {k} of {scores.shape[1]}, in per cent"
            found[f"{way}_recall{k}"] = _measured(values[-1][column], drawn[-1][:, column], said)
        found[f"{way}_rank"] = _measured(values[-1][-1], drawn[-1][:, -1], f"median rank of a {way} among {scores.shape[1]}")
    mean = float(np.mean([each[:-1] for each in values]))
    spread = np.mean([each[:, :-1].mean(1) for each in drawn], axis=0)
    return {"recall": _measured(mean, spread, "mean of the recalls at 1, 5 and 10, both ways"), **found}


def _judged(table: Rows) -> Rows:
    """The recalls, and the median rank, of a table with a row for each question."""
    return np.append(table[:, :-1].mean(0), np.median(table[:, -1]))


def _again(table: Rows) -> Rows:
    """The same for questions that are drawn again, with replacement, many times over."""
    chance = np.random.default_rng(0)
    return np.stack([_judged(table[chance.integers(len(table), size=len(table))]) for _ in range(RESAMPLES)])


def _measured(value: float, drawn: NDArray[np.float64], said: str) -> Measurement:
    edge = (100 - LEVEL) / 2
    low, high = np.percentile(drawn, [edge, 100 - edge])
    return Measurement(float(value), float(low), float(high), said)
