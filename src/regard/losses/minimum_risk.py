"""Minimum-risk training."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def minimum_risk(
    logs: Float[Tensor, "batch outputs"],
    rewards: Float[Tensor, "batch outputs"],
    keep: Bool[Tensor, "batch outputs"],
    alpha: float,
) -> Float[Tensor, " batch"]:
    """Expected risk of each source over a set of outputs, weighted by the model's sharpened probabilities.

        risk = Σ_y Q(y | x) Δ(y),    Q(y | x) = p(y | x)^α / Σ_y' p(y' | x)^α,    Δ = 1 - reward

    with y, y' among the given outputs. A small α makes Q uniform, α = 1 keeps the model's own proportions: over all possible
    outputs, the risk is then the expected loss.
    Shen et al. 2016, https://arxiv.org/abs/1512.02433
    """
    shares = (alpha * logs).masked_fill(~keep, -torch.inf).softmax(-1)
    return (shares * (1 - rewards)).masked_fill(~keep, 0.0).sum(-1)
