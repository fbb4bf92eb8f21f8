"""The Transformer's attention: multi-head scaled dot product."""

from typing import Any

from regard.attention.multihead import MultiHead


class Transformer(MultiHead):
    """Multi-head attention with scaled dot products and a softmax, concatenated and projected.

        softmax(Q Kᵀ / √d) V  in each head

    Vaswani et al. 2017, eq. 1 and section 3.2.2, https://arxiv.org/abs/1706.03762
    Any other `score` takes the place of the scaled dot product in every head.
    Cost: time O(T S d), memory O(T d) where a fused kernel runs.
    """

    def __init__(self, query: int, key: int | None = None, heads: int = 8, score: Any = "scaled_dot", **options: Any):
        super().__init__(query, key, heads=heads, score=score, **options)
