"""Additive score, Bahdanau's."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.per_head import PerHead
from regard.attention.score import require_size


class Additive(nn.Module):
    """Additive score: a feed-forward network with one hidden layer over query and key.

        score(q, k) = vᵀ tanh(W q + U k)

    Bahdanau, Cho and Bengio 2015, appendix A.1.2, https://arxiv.org/abs/1409.0473
    `hidden` is the size of the hidden layer, by default that of the key.
    Cost: time O(T S hidden) with a tanh for each, and in the reference as much memory; the additive kernel takes T S.
    """

    def __init__(self, query: int, key: int, hidden: int | None = None, heads: int = 1):
        super().__init__()
        hidden = hidden or key
        self.query, self.key = query, key
        self.W = PerHead(query, hidden, heads)
        self.U = PerHead(key, hidden, heads)
        self.v = PerHead(hidden, 1, heads)

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch heads keys hidden"]:
        """U k: independent of the query, so it is computed once per source."""
        require_size("Additive", "key", self.key, key.shape[-1])
        prepared: Tensor = self.U(key)
        return prepared

    def project(self, query: Float[Tensor, "batch heads queries query"]) -> Float[Tensor, "batch heads queries hidden"]:
        """W q."""
        require_size("Additive", "query", self.query, query.shape[-1])
        projected: Tensor = self.W(query)
        return projected

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys hidden"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        hidden = torch.tanh(self.project(query)[:, :, :, None] + prepared[:, :, None])  # batch heads queries keys hidden
        return (hidden @ self.v.weight.mT[:, None])[..., 0]
