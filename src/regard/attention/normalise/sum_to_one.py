"""Sum to one: weights proportional to the scores."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from regard.attention.normalise import Allowed, Scores, silence, widen


@dataclass(frozen=True)
class SumToOne:
    """Weights proportional to the scores, as in kernel regression; a score below zero counts as zero.

        a_k = max(0, s_k) / Σ_j max(0, s_j)

    Nadaraya 1964, https://doi.org/10.1137/1109020, and Watson 1964, https://www.jstor.org/stable/25049340
    A query without a positive score has zero weights.
    Cost: time O(T S), memory T S.
    """

    sums_to_one: ClassVar[bool] = False

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        positive = silence(widen(scores).clamp_min(0), allowed)
        total = positive.sum(-1, keepdim=True)
        return (positive / torch.where(total > 0, total, 1.0)).to(scores.dtype)

    def refuses(self, highest: float) -> str | None:
        """The reason against scores that never rise above `highest`, or None."""
        if highest <= 0:
            return "its scores are never positive, so no key would get a share; use Softmax or Sparsemax"
        return None
