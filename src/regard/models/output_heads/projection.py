"""Linear projection onto the vocabulary, as output layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.models.output_heads import build_weight


class Projection(nn.Module):
    """Logits by a linear projection; tied, its matrix is the embedding table.

        logits = E x + b,  or  E (P x) + b  where x is not as wide as an embedding

    Press and Wolf 2017, https://arxiv.org/abs/1608.05859. Without `bias` b is frozen, at 0 unless it is given.
    Cost: time O(T V d), memory T V; training never holds the logits of more than a few rows.
    """

    def __init__(self, size: int, vocabulary: int, embedding: int, tie: bool, bias: bool = True):
        super().__init__()
        self.fit = nn.Linear(size, embedding, bias=False) if tie and size != embedding else nn.Identity()
        self.weight = build_weight(vocabulary, size, tie)
        self.bias = nn.Parameter(torch.zeros(vocabulary), requires_grad=bias)

    def forward(
        self, data: Float[Tensor, "*rows size"], table: Float[Tensor, "vocabulary embedding"]
    ) -> Float[Tensor, "*rows vocabulary"]:
        return F.linear(self.fit(data), self.matrix(table), self.bias)

    def matrix(self, table: Float[Tensor, "vocabulary embedding"]) -> Float[Tensor, "vocabulary width"]:
        """Matrix of the projection, tied or own."""
        return table if self.weight is None else self.weight
