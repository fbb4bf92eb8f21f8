"""Straight-through Gumbel-softmax: one-hot weights in the forward, the gradient of a softmax in the backward."""

from typing import ClassVar

import torch
from torch import nn

from regard.attention.normalise import Allowed, Scores, hide, silence, widen
from regard.attention.normalise.hard import sample_gumbel, select_one_hot


class Gumbel(nn.Module):
    """One-hot weights with a straight-through gradient, that of a softmax with temperature τ.

        a = one_hot(argmax_k s_k),  and while training a = one_hot(argmax_k (s_k + g_k)),  ∂a = ∂softmax((s + g) / τ)

    with g = -log(-log u), u ~ uniform(0, 1).
    Jang, Gu and Poole 2017, section 2.2, straight-through, https://arxiv.org/abs/1611.01144
    The gradient is biased, and needs no reward. `tau` is τ: a small one lowers the bias and raises the variance; here it
    is constant, and in the paper it may be annealed. Like dropout it samples in training mode only, which is a module's
    default. Of equal scores the first wins.
    Cost: time O(T S), memory T S.
    """

    sums_to_one: ClassVar[bool] = True
    random: ClassVar[bool] = True

    def __init__(self, tau: float = 1.0):
        super().__init__()
        if not tau > 0:
            raise ValueError(f"Gumbel needs tau above 0, got {tau}; 1 is the usual choice")
        self.tau = tau

    def forward(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        if not self.training:
            return select_one_hot(hide(scores, allowed), allowed)
        noisy = hide(widen(scores), allowed)
        noisy = noisy + sample_gumbel(noisy)
        soft = silence(torch.softmax(noisy / self.tau, dim=-1), allowed)
        return (select_one_hot(noisy.detach(), allowed) + (soft - soft.detach())).to(scores.dtype)

    def extra_repr(self) -> str:
        return f"tau={self.tau}"
