"""Top-k: softmax over the k largest scores."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from regard.attention.normalise import Allowed, Scores, hide
from regard.attention.normalise.softmax import Softmax


@dataclass(frozen=True)
class TopK:
    """Softmax over the k keys with the largest scores; all others get exactly zero.

        a = softmax(s restricted to its k largest)

    Zhao et al. 2019, eq. 2, https://arxiv.org/abs/1912.11637; Gupta et al. 2021, https://arxiv.org/abs/2106.06899
    Unlike the first, ties are broken, so that never more than k keys are read. With k keys or fewer it is softmax.
    Cost: time O(T S log S) for the sort, memory T S.
    """

    k: int = 3
    sums_to_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"TopK needs k of 1 or more, got {self.k}")

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        order = hide(scores, allowed).argsort(dim=-1, descending=True, stable=True)
        best = torch.arange(scores.shape[-1], device=scores.device) < self.k
        chosen = torch.zeros_like(order, dtype=torch.bool).scatter(-1, order, best.expand_as(order))
        return Softmax()(scores, chosen if allowed is None else chosen & allowed)
