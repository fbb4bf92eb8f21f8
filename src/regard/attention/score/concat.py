"""Concatenation score, "concat" in Luong et al."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.per_head import PerHead, project_heads
from regard.attention.score import require_size


class Concat(nn.Module):
    """Concatenation score: one layer over the concatenated query and key.

        score(q, k) = vᵀ tanh(W [q; k])

    Luong, Pham and Manning 2015, section 3.1, between eq. 7 and 8, https://arxiv.org/abs/1508.04025
    It is of the family of Additive, since W [q; k] = W₁ q + W₂ k. Without the tanh (tanh=False) the score is a sum of a term
    of the query and one of the key, vᵀ W₁ q + vᵀ W₂ k; the first is equal for all keys, so it cancels in the softmax, and
    the weights do not depend on the query. `hidden` is the size of the layer, by default that of the key.
    Cost: that of Additive.
    """

    def __init__(self, query: int, key: int, hidden: int | None = None, heads: int = 1, tanh: bool = True):
        super().__init__()
        hidden = hidden or key
        self.query, self.key, self.tanh = query, key, tanh
        self.W = PerHead(query + key, hidden, heads)
        self.v = PerHead(hidden, 1, heads)

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch heads keys hidden"]:
        """W₂ k: independent of the query, so it is computed once per source."""
        require_size("Concat", "key", self.key, key.shape[-1])
        return project_heads(key, self.W.weight[:, :, self.query :])

    def project(self, query: Float[Tensor, "batch heads queries query"]) -> Float[Tensor, "batch heads queries hidden"]:
        """W₁ q: the query's half of W."""
        require_size("Concat", "query", self.query, query.shape[-1])
        return project_heads(query, self.W.weight[:, :, : self.query])

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys hidden"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        hidden = self.project(query)[:, :, :, None] + prepared[:, :, None]  # batch heads queries keys hidden
        return ((torch.tanh(hidden) if self.tanh else hidden) @ self.v.weight.mT[:, None])[..., 0]
