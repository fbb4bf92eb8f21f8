"""Retrieval metrics: recall@k and median rank."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

CUTOFFS = (1, 5, 10)
Counts = NDArray[np.int64]
"""One count for each query."""
RankCounts = tuple[Counts, Counts, Counts]


class Ranks(NamedTuple):
    """Recall at 1, 5 and 10 in per cent, and the median rank of the first right answer."""

    recall: dict[int, float]
    median: float


class BothDirections(NamedTuple):
    """Retrieval metrics in both directions."""

    to_text: Ranks
    to_picture: Ranks


def compute_ranks(scores: Float[Tensor, "questions answers"], right: Bool[Tensor, "questions answers"]) -> Ranks:
    """Recall@k and median rank of a ranking by score; `right` is True where an answer belongs to a question.

    Answers with equal scores are in no order: the metrics are means over all orders of them. With g wrong answers above the
    best right one and a tie of it with e wrong and c right ones, the first right one has the mean rank g + (e + c + 1) / (c
    + 1), and is among the first k unless the first k - g of the tie are all wrong:

        P = 1 - Π_{i < k - g} (e - i) / (e + c - i)
    """
    counts = count_ties(scores, right)
    return Ranks(
        {k: float(100 * compute_recall(*counts, k).mean()) for k in CUTOFFS}, float(np.median(compute_first_rank(*counts)))
    )


def count_ties(scores: Float[Tensor, "questions answers"], right: Bool[Tensor, "questions answers"]) -> RankCounts:
    """Counts for each question: wrong answers above the best right one, and wrong and right ones tied with it."""
    if scores.shape != right.shape or scores.ndim != 2:
        raise ValueError(f"ranks need scores and answers of one shape, got {tuple(scores.shape)} and {tuple(right.shape)}")
    if len(scores) == 0 or not bool(right.any(1).all()):
        raise ValueError("ranks need one question or more, and a right answer for each")
    if not bool(scores.isfinite().all()):
        raise ValueError("ranks need scores that are finite numbers")
    values = scores.double()
    best = values.masked_fill(~right, -torch.inf).max(1, keepdim=True).values
    above, tied = values > best, values == best
    counts = (mask.sum(1).cpu().numpy() for mask in (above, tied & ~right, tied & right))
    above_count, tied_wrong, tied_right = counts
    return above_count, tied_wrong, tied_right


def compute_first_rank(above: Counts, wrong: Counts, good: Counts) -> NDArray[np.float64]:
    """Mean rank of the first right answer."""
    return above + (wrong + good + 1) / (good + 1)


def compute_recall(above: Counts, wrong: Counts, good: Counts, cutoff: int) -> NDArray[np.float64]:
    """Probability that a right answer is among the first `cutoff`, with ties in random order."""
    missed = np.ones(len(above))
    for position in range(cutoff):
        within_cutoff = above + position < cutoff
        missed *= np.where(within_cutoff, np.maximum(wrong - position, 0) / np.maximum(wrong + good - position, 1), 1.0)
    return 1 - missed


def compute_both_directions(
    scores: Float[Tensor, "pictures texts"], right: Bool[Tensor, "pictures texts"] | None = None
) -> BothDirections:
    """Retrieval metrics of texts for pictures and of pictures for texts; without `right`, picture n belongs to text n."""
    if right is None:
        if scores.shape[0] != scores.shape[1]:
            raise ValueError(
                f"{scores.shape[0]} pictures and {scores.shape[1]} texts do not pair off; say in `right` which belong "
                "together"
            )
        right = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return BothDirections(compute_ranks(scores, right), compute_ranks(scores.mT, right.mT))
