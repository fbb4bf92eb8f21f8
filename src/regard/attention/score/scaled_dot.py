"""Scaled dot product, the score of the Transformer."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score import require_same_size


@dataclass(frozen=True)
class ScaledDot:
    """Dot product scaled by 1/√d, so that its variance does not grow with the dimension.

        score(q, k) = qᵀ k / √d

    Vaswani et al. 2017, eq. 1, https://arxiv.org/abs/1706.03762
    `scale` replaces 1/√d where it is given.
    Cost: time O(T S d), memory T S; a fused kernel needs no T S.
    """

    one_size: ClassVar[bool] = True
    scale: float | None = None

    def prepare(self, key: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys dim"]:
        return key

    def project(self, query: Float[Tensor, "batch heads queries dim"]) -> Float[Tensor, "batch heads queries dim"]:
        """q / √d."""
        return query * self.factor(query)

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("ScaledDot", query.shape[-1], prepared.shape[-1])
        if query.dtype in (torch.float16, torch.bfloat16):  # half-precision products overflow before they are scaled
            return self.project(query) @ prepared.mT
        return (query @ prepared.mT).mul_(self.factor(query))

    def factor(self, query: Float[Tensor, "batch heads queries dim"]) -> float:
        """1/√d, or the given `scale`."""
        return query.shape[-1] ** -0.5 if self.scale is None else self.scale
