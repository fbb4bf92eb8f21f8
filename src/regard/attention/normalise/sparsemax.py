"""Sparsemax: Euclidean projection of the scores onto the simplex, with exact zeros."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from regard.attention.normalise import Allowed, Scores, hide, silence, widen


@dataclass(frozen=True)
class Sparsemax:
    """Projection of the scores onto the simplex: keys far below the maximum get exactly zero.

        a = argmin_p ‖p - s‖²    so that    a_k = max(0, s_k - τ),  τ such that Σ a = 1

    Martins and Astudillo 2016, section 2.2, proposition 1 and algorithm 1, https://arxiv.org/abs/1602.02068
    Cost: time O(T S log S) for the sort, memory T S.
    """

    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        if scores.shape[-1] == 0:  # no keys, no maximum
            return scores
        hidden = hide(widen(scores), allowed)
        shifted = hidden - hidden.detach().amax(-1, keepdim=True)
        ordered = shifted.sort(dim=-1, descending=True).values
        excess = ordered.cumsum(-1) - 1
        rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device, dtype=ordered.dtype)
        support = (rank * ordered > excess).sum(-1, keepdim=True).clamp_min(1)  # none is NaN's
        tau = excess.gather(-1, support - 1) / support
        return silence((shifted - tau).clamp_min(0), allowed).to(scores.dtype)
