"""Mixture of softmaxes: several opinions, each sure of its own."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.models.layers.log_mixture import mix
from regard.models.output_heads import matrix


class Mixture(nn.Module):
    """Several heads propose a distribution each, and the data says how far each is to be trusted.

        p(y) = Σ_k π_k softmax_y(E h_k + b),    h_k = tanh(W_k x),    π = softmax(U x)

    Yang et al. 2018, https://arxiv.org/abs/1711.03953
    One softmax of E x has a matrix of logarithms, contexts by words, whose rank is at most that of E and one more; a mixture
    has no such bound. Unlike the paper there is a bias b, as the projection has it, the same for all heads. What comes out
    is log p.
    Cost: time O(K T V d), memory K T V for K heads.
    """

    def __init__(self, size: int, vocabulary: int, embedding: int, tie: bool = True, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.W = nn.Linear(size, heads * (embedding if tie else size), bias=False)
        self.U = nn.Linear(size, heads, bias=False)
        self.weight = matrix(vocabulary, size, tie)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(
        self, data: Float[Tensor, "rows time size"], table: Float[Tensor, "vocabulary embedding"]
    ) -> Float[Tensor, "rows time vocabulary"]:
        each = torch.unflatten(torch.tanh(self.W(data)), -1, (self.heads, -1))  # rows time heads width
        logits = F.linear(each, table if self.weight is None else self.weight, self.bias)
        return mix(logits, self.U(data).softmax(-1))
