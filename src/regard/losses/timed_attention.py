"""Attention loss on known times: trains an attention over frames towards the frames in which each token was said."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.types import Attended
from regard.losses.attention_penalties import list_cross_weights

MIN_SHARE = 1e-6
"""Lower bound of the attention inside a token's frames, so that none costs much and not infinitely much."""


def timed_attention_loss(
    attended: Mapping[str, Attended], frames: Int[Tensor, "batch time 2"], keep: Bool[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """Negative logarithm of the attention inside the frames of each token, summed over kept tokens with known times.

        - Σ_t log Σ_{first_t ≤ s < last_t} a_ts

    `frames` holds the first frame of each token and the one after its last; a token whose last is not after its first has
    no known time (a blank, EOS) and counts for nothing. It is averaged over heads and attentions. It is the guided
    alignment of Chen et al. 2016 (https://arxiv.org/abs/1607.01628) for a stretch of frames, of which none is preferred.
    """
    cross_weights = list_cross_weights(attended)
    if not cross_weights:
        raise ValueError("an attention loss on known times needs the weights of an attention over frames, got none")
    weights = torch.cat(cross_weights, dim=1)  # batch heads time keys
    places = torch.arange(weights.shape[-1], device=weights.device)
    inside = (places >= frames[..., :1]) & (places < frames[..., 1:])  # batch time keys
    share = (weights * inside[:, None]).sum(-1).clamp(MIN_SHARE, 1.0)
    known = keep & (frames[..., 1] > frames[..., 0])
    return -share.log().mean(1).masked_fill(~known, 0.0).sum()
