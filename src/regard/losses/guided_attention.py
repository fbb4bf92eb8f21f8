"""Guided attention loss: penalises attention far from the diagonal, since source and target mostly have the same order."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.normalise import widen
from regard.attention.types import Attended
from regard.decoding.attention_weights import is_cross_attention

WIDTH = 0.2
"""Width of the diagonal without much penalty, as a share of the sentence: g in the paper."""


def guided_attention_loss(
    attended: Mapping[str, Attended], source: Bool[Tensor, "batch keys"], target: Bool[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """Distance of attentions over the source from the diagonal, summed over the kept tokens, averaged over heads.

        Σ_t Σ_s a_ts (1 - exp(-(s / S - t / T)² / 2g²)),   g = 0.2

    Tachibana, Uenoyama and Aihara 2017, https://arxiv.org/abs/1710.08969
    Unlike theirs it is a sum over tokens, as all losses here are: the loop divides by their number.
    """
    looks = [widen(each.weights) for name, each in attended.items() if is_cross_attention(name) and each.weights is not None]
    if not looks:
        raise ValueError("train.guided_attention needs an attention over the source, and this model has none; set it to 0")
    apart = _compute_positions(source)[:, None, :] - _compute_positions(target)[:, :, None]  # batch time keys
    price = 1 - torch.exp(-(apart**2) / (2 * WIDTH**2))
    paid = (torch.cat(looks, dim=1).mean(1) * price).sum(-1)
    return paid.masked_fill(~target, 0.0).sum()


def _compute_positions(keep: Bool[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
    """Relative position of each token in its sentence, from 0 towards 1."""
    return torch.arange(keep.shape[1], device=keep.device) / keep.sum(1, keepdim=True).clamp_min(1)
