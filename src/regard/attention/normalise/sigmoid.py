"""Sigmoid attention: each key is weighted independently."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from regard.attention.normalise import Allowed, Scores, silence


@dataclass(frozen=True)
class Sigmoid:
    """Elementwise sigmoid of the scores: weights do not compete and need not sum to one.

        a_k = 1 / (1 + exp(-(s_k + bias)))

    Ramapuram et al. 2024, https://arxiv.org/abs/2409.04431
    The paper takes bias = -log S, so that a long memory does not start with a sum of S / 2.
    Cost: time O(T S), memory T S.
    """

    bias: float = 0.0
    sums_to_one: ClassVar[bool] = False

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        return silence(torch.sigmoid(scores + self.bias), allowed)
