"""Doubly stochastic attention: a penalty on source positions that a target's attention does not sum to one over.

Unlike `train.coverage_weight`, which penalises attending twice, it also penalises what was left out.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.normalise import widen
from regard.attention.types import Attended
from regard.decoding.attention_weights import is_cross_attention


def doubly_stochastic_loss(
    attended: Mapping[str, Attended], keep: Bool[Tensor, "batch time"], places: Bool[Tensor, "batch keys"] | None = None
) -> Float[Tensor, ""]:
    """Squared distance of each source position's total attention from one, summed over all, averaged over heads.

        Σ_i (1 - Σ_t a_ti)²

    Xu et al. 2015, section 4.2.1, https://arxiv.org/abs/1502.03044, where it is added to the loss, times λ.
    `keep` is the target's padding mask, and `places` the source's; None: all. It is a sum over targets, as all losses are:
    the training loop divides by the number of tokens.
    """
    looks = [widen(each.weights) for name, each in attended.items() if is_cross_attention(name) and each.weights is not None]
    if not looks:
        raise ValueError(
            "doubly stochastic attention needs the weights of an attention over the source, got none; ask for weights, or "
            "set its price to 0"
        )
    read = torch.cat(looks, dim=1).masked_fill(~keep[:, None, :, None], 0.0).sum(2)  # batch heads keys
    missed = (1.0 - read).square().mean(1)
    return missed.sum() if places is None else missed.masked_fill(~places, 0.0).sum()
