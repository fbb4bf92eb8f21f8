"""Mixture of softmaxes as output layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.models.layers.log_mixture import mix_distributions
from regard.models.output_heads import build_weight


class Mixture(nn.Module):
    """Mixture of softmaxes: several heads give a distribution each, weighted by the decoder state.

        p(y) = Σ_k π_k softmax_y(E h_k + b),    h_k = tanh(W_k x),    π = softmax(U x)

    Yang et al. 2018, https://arxiv.org/abs/1711.03953
    The log-probabilities of one softmax of E x, contexts by tokens, have at most the rank of E plus one; a mixture has no
    such bound. Unlike the paper there is a bias b, as the projection has it, the same for all heads. Returns log p.
    Cost: time O(K T V d), memory K T V for K heads.
    """

    def __init__(self, size: int, vocabulary: int, embedding: int, tie: bool = True, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.W = nn.Linear(size, heads * (embedding if tie else size), bias=False)
        self.U = nn.Linear(size, heads, bias=False)
        self.weight = build_weight(vocabulary, size, tie)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(
        self, data: Float[Tensor, "rows time size"], table: Float[Tensor, "vocabulary embedding"]
    ) -> Float[Tensor, "rows time vocabulary"]:
        components = torch.unflatten(torch.tanh(self.W(data)), -1, (self.heads, -1))  # rows time heads width
        logits = F.linear(components, table if self.weight is None else self.weight, self.bias)
        return mix_distributions(logits, self.U(data).softmax(-1))
