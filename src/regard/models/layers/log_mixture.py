"""Log-space mixtures of distributions, in which small probabilities are not lost."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def masked_log(shares: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Logarithm, minus infinity at 0; a share of 0 then gets no gradient, where the plain formula has NaN."""
    some = shares > 0
    return torch.where(some, shares, 1.0).log().masked_fill(~some, -math.inf)


def mix_distributions(
    logits: Float[Tensor, "rows time parts vocabulary"], shares: Float[Tensor, "rows time parts"]
) -> Float[Tensor, "rows time vocabulary"]:
    """Log-probabilities of a mixture of distributions.

        log p(y) = log Σ_n a_n softmax(logits_n)_y

    A part whose share is 0 contributes nothing.
    """
    return (to_float32(logits).log_softmax(-1) + masked_log(shares)[..., None]).logsumexp(-2)


def to_float32(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Cast to at least float32: half precision has no room for the logarithm of a probability near one."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
