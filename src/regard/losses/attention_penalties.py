"""Penalties on cross-attention weights: coverage, doubly stochastic attention, and guided attention along the diagonal.

Coverage penalises attending twice to a source position. Doubly stochastic attention also penalises positions that were left
out. Guided attention penalises weights far from the diagonal, since source and target mostly have the same order.
"""

from collections.abc import Iterable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.attention.normalise import widen
from regard.attention.types import Attended
from regard.decoding.attention_weights import is_cross_attention

Mask = Bool[Tensor, "batch time"]
WIDTH = 0.2
"""Width of the diagonal without much penalty, as a share of the sentence: g in the paper."""


def coverage_loss(attended: Mapping[str, Attended], keep: Mask) -> Float[Tensor, ""]:
    """Coverage loss: attention to positions that were attended to before, summed over kept tokens, averaged over heads.

        Σ_t Σ_s min(a_ts, c_ts),   c_t = Σ_{t' < t} a_t'

    See, Liu and Manning 2017, eq. 12 and 13, https://arxiv.org/abs/1704.04368
    """
    weights = {name: widen(attention.weights) for name, attention in attended.items() if attention.weights is not None}
    all_weights = torch.cat([weights[name] for name in list_cross_attentions(weights)], dim=1)  # batch heads queries keys
    covered = functional.pad(all_weights.cumsum(2)[:, :, :-1], (0, 0, 1, 0))
    return torch.minimum(all_weights, covered).sum(-1).mean(1).masked_fill(~keep, 0.0).sum()


def doubly_stochastic_loss(
    attended: Mapping[str, Attended], keep: Bool[Tensor, "batch time"], source_keep: Bool[Tensor, "batch keys"] | None = None
) -> Float[Tensor, ""]:
    """Squared distance of each source position's total attention from one, summed over all, averaged over heads.

        Σ_i (1 - Σ_t a_ti)²

    Xu et al. 2015, section 4.2.1, https://arxiv.org/abs/1502.03044, where it is added to the loss, times λ.
    `keep` is the target's padding mask, and `source_keep` the source's; None: all. It is a sum over targets, as all losses
    are:
    the training loop divides by the number of tokens.
    """
    cross_weights = list_cross_weights(attended)
    if not cross_weights:
        raise ValueError(
            "doubly stochastic attention needs the weights of an attention over the source, got none; ask for weights, or "
            "set its weight to 0"
        )
    received = torch.cat(cross_weights, dim=1).masked_fill(~keep[:, None, :, None], 0.0).sum(2)  # batch heads keys
    penalty = (1.0 - received).square().mean(1)
    return penalty.sum() if source_keep is None else penalty.masked_fill(~source_keep, 0.0).sum()


def guided_attention_loss(
    attended: Mapping[str, Attended], source: Bool[Tensor, "batch keys"], target: Bool[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """Distance of attentions over the source from the diagonal, summed over the kept tokens, averaged over heads.

        Σ_t Σ_s a_ts (1 - exp(-(s / S - t / T)² / 2g²)),   g = 0.2

    Tachibana, Uenoyama and Aihara 2017, https://arxiv.org/abs/1710.08969
    Unlike theirs it is a sum over tokens, as all losses here are: the loop divides by their number.
    """
    cross_weights = list_cross_weights(attended)
    if not cross_weights:
        raise ValueError("train.guided_attention needs an attention over the source, and this model has none; set it to 0")
    distance = _compute_positions(source)[:, None, :] - _compute_positions(target)[:, :, None]  # batch time keys
    penalty = 1 - torch.exp(-(distance**2) / (2 * WIDTH**2))
    penalties = (torch.cat(cross_weights, dim=1).mean(1) * penalty).sum(-1)
    return penalties.masked_fill(~target, 0.0).sum()


def _compute_positions(keep: Bool[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
    """Relative position of each token in its sentence, from 0 towards 1."""
    return torch.arange(keep.shape[1], device=keep.device) / keep.sum(1, keepdim=True).clamp_min(1)


def list_cross_weights(attended: Mapping[str, Attended]) -> list[Float[Tensor, "batch heads time keys"]]:
    """Weights of each cross-attention that returned them."""
    return [
        widen(attention.weights)
        for name, attention in attended.items()
        if is_cross_attention(name) and attention.weights is not None
    ]


def list_cross_attentions(names: Iterable[str], setting: str = "train.coverage_weight") -> list[str]:
    """Names of the cross-attentions; raises if there is none for the setting."""
    cross_attentions = [name for name in names if is_cross_attention(name)]
    if not cross_attentions:
        raise ValueError(f"{setting} needs an attention over the source, and this model has none; set it to 0")
    return cross_attentions
