"""Distance score: negative squared L2 distance."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score import require_same_size


@dataclass(frozen=True)
class Distance:
    """Negative squared distance of query and key, whose softmax is a Gaussian kernel.

        score(q, k) = -‖q - k‖² / (2 σ²)

    Kim, Papamakarios and Mnih 2021, "L2 self-attention", https://arxiv.org/abs/2006.04710
    `sigma` is σ. Unlike the paper, σ² = √d by default, half its exponent: keys of equal norm then get the weights of
    ScaledDot.
    Cost: time O(T S d), memory T S.
    """

    one_size: ClassVar[bool] = True
    sigma: float | None = None
    highest = 0.0

    def __post_init__(self) -> None:
        if self.sigma is not None and self.sigma <= 0:
            raise ValueError(f"Distance needs sigma above 0, got {self.sigma}")

    def prepare(self, key: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys dim"]:
        return key

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("Distance", query.shape[-1], prepared.shape[-1])
        variance = query.shape[-1] ** 0.5 if self.sigma is None else self.sigma**2
        wide = torch.promote_types(query.dtype, torch.float32)  # squares overflow first
        q, k = query.to(wide), prepared.to(wide)
        lengths = q.square().sum(-1)[..., None] + k.square().sum(-1)[..., None, :]
        return ((q @ k.mT - lengths / 2).clamp_max(0) / variance).to(query.dtype)
