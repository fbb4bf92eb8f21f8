"""Softmax: every allowed key has a positive weight."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from regard.attention.normalise import Allowed, Scores, hide, silence


@dataclass(frozen=True)
class Softmax:
    """Weights proportional to the exponential of the score; none is exactly zero.

        a_k = exp(s_k) / Σ_j exp(s_j)

    Bahdanau, Cho and Bengio 2015, eq. 6, https://arxiv.org/abs/1409.0473
    Cost: time O(T S), memory T S; none of it where a fused kernel covers the request.
    """

    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        return silence(torch.softmax(hide(scores, allowed), dim=-1), allowed)
