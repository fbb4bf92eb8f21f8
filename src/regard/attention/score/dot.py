"""Dot product, "dot" in Luong et al."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from regard.attention.score import require_same_size


@dataclass(frozen=True)
class Dot:
    """Dot product of query and key.

        score(q, k) = qᵀ k

    Luong, Pham and Manning 2015, section 3.1, between eq. 7 and 8, https://arxiv.org/abs/1508.04025
    Cost: time O(T S d), memory T S; a fused kernel needs no T S.
    """

    one_size: ClassVar[bool] = True

    def prepare(self, key: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys dim"]:
        return key

    def project(self, query: Float[Tensor, "batch heads queries dim"]) -> Float[Tensor, "batch heads queries dim"]:
        return query

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("Dot", query.shape[-1], prepared.shape[-1])
        return query @ prepared.mT
