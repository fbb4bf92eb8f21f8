"""Logit soft-capping, Gemma's."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score import require_same_size
from regard.attention.score.scaled_dot import ScaledDot


@dataclass(frozen=True)
class Softcap:
    """Scaled dot product with logit soft-capping: a tanh bounds it between -cap and cap.

        score(q, k) = cap tanh(qᵀ k / (√d cap))

    Gemma Team 2024, section 2, "logit soft-capping", https://arxiv.org/abs/2408.00118
    `scale` replaces 1/√d where it is given.
    Cost: that of ScaledDot, and a tanh for each score; no fused kernel here has a softcap.
    """

    one_size: ClassVar[bool] = True
    cap: float = 50.0
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.cap <= 0:
            raise ValueError(f"Softcap needs a cap above 0, got {self.cap}")

    def prepare(self, key: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys dim"]:
        return key

    def project(self, query: Float[Tensor, "batch heads queries dim"]) -> Float[Tensor, "batch heads queries dim"]:
        """q / √d."""
        return ScaledDot(self.scale).project(query)

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("Softcap", query.shape[-1], prepared.shape[-1])
        return self.cap * torch.tanh(ScaledDot(self.scale)(query, prepared) / self.cap)
