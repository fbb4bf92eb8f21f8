"""Hard attention: one-hot weights, sampled in training."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.normalise import Allowed, Scores, hide, silence, visible, widen
from regard.attention.types import Sampled


class Hard(nn.Module):
    """One-hot weights: a sample from the softmax of the scores in training, else the argmax.

        a = one_hot(j),  j = argmax_k s_k,  and while training j ~ softmax(s)

    Xu et al. 2015, section 4.1, eq. 11 and 12, https://arxiv.org/abs/1502.03044
    No gradient passes through a sample. Its log-probability and the entropy of its distribution come back in
    `Attended.sampled`, both differentiable in the scores, and losses/hard_attention.py makes a gradient of them (REINFORCE).
    Like dropout it samples in training mode only, which is a module's default. Of equal scores the first wins.
    A random fraction `soft` of the rows of each call gets softmax weights, through which a gradient passes: half of the
    images in the paper, and none here by default (train.soft_attention_rate).
    Cost: time O(T S), memory T S.
    """

    sums_to_one: ClassVar[bool] = True
    random: ClassVar[bool] = True
    """True: two calls in training may differ."""
    rewarded: ClassVar[bool] = True
    """True if it learns by REINFORCE, which the loss reads."""

    def __init__(self, soft: float = 0.0) -> None:
        super().__init__()
        if not 0 <= soft <= 1:
            raise ValueError(f"Hard needs a fraction of softmax rows from 0 to 1, got {soft}")
        self.soft = soft

    def extra_repr(self) -> str:
        return f"soft={self.soft}" if self.soft else ""

    def forward(self, scores: Scores, allowed: Allowed | None = None) -> Scores | tuple[Scores, Sampled]:
        if not self.training:
            return select_one_hot(hide(scores, allowed), allowed)
        wide = hide(widen(scores), allowed)
        sample = select_one_hot(wide.detach() + sample_gumbel(wide), allowed)
        log = wide.log_softmax(-1)
        log = log if allowed is None else log.masked_fill(~visible(allowed), 0.0)  # never 0 times infinity
        share = silence(log.exp(), allowed)
        sampled = Sampled((sample * log).sum(-1), -(share * log).sum(-1))
        if self.soft == 0:
            return sample.to(scores.dtype), sampled
        softly = wide.new_empty(len(wide), 1, 1, 1).uniform_() < self.soft
        certain = sampled.log_probability.masked_fill(softly[..., 0], 0.0)
        return torch.where(softly, share, sample).to(scores.dtype), sampled._replace(log_probability=certain)


def select_one_hot(scores: Scores, allowed: Allowed | None) -> Scores:
    """One-hot argmax of each query's scores; of equal scores the first."""
    if scores.shape[-1] == 0:  # no keys, no best one
        return torch.zeros_like(scores)
    best = scores.detach().max(-1, keepdim=True)
    one = 1 + 0 * best.values  # NaN where the best score is no number
    return silence(torch.zeros_like(scores).scatter(-1, best.indices, one), allowed)


def sample_gumbel(like: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Gumbel noise g = -log(-log u), u ~ uniform(0, 1): argmax_k s_k + g_k is a sample of softmax(s).

    Gumbel 1954; Maddison, Tarlow and Minka 2014, https://arxiv.org/abs/1411.0030
    """
    exponential = torch.empty_like(like, requires_grad=False).exponential_()
    return -exponential.clamp_min(torch.finfo(like.dtype).tiny).log()
