"""Bilinear score, "general" in Luong et al."""

import math

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.per_head import PerHead
from regard.attention.score import require_size


class Bilinear(nn.Module):
    """Bilinear score: a product of query and key through a learned matrix.

        score(q, k) = qᵀ W k

    Luong, Pham and Manning 2015, section 3.1, between eq. 7 and 8, https://arxiv.org/abs/1508.04025
    Unlike the paper, W need not be square: the query and the key may differ in size. It is initialised uniformly within
    ±√(3 / (d_q d_k)), so that queries and keys of variance one have scores of variance one.
    Cost: time O(S d² + T S d), memory T S; a fused kernel needs no T S.
    """

    def __init__(self, query: int, key: int, heads: int = 1):
        super().__init__()
        self.query, self.key = query, key
        self.W = PerHead(key, query, heads, within=math.sqrt(3 / (query * key)))

    def steady(self) -> None:
        """Scale the learning rate of W by 1 / √d, for queries and keys of variance one."""
        self.W.pace = self.query**-0.5

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch heads keys query"]:
        """W k: independent of the query, so it is computed once per source."""
        require_size("Bilinear", "key", self.key, key.shape[-1])
        prepared: Tensor = self.W(key)
        return prepared

    def project(self, query: Float[Tensor, "batch heads queries dim"]) -> Float[Tensor, "batch heads queries dim"]:
        return query

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_size("Bilinear", "query", self.query, query.shape[-1])
        return query @ prepared.mT
