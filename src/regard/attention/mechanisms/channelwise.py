"""Channel-wise attention: every dimension of a value has its own weights."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.per_head import PerHead
from regard.attention.score.additive import Additive
from regard.attention.types import Encoded, Memory


class Channelwise(Attention):
    """Attention with separate weights for each channel of the values, by a network whose hidden layer they share.

        score_c(q, k) = (V tanh(W q + U k))_c
        context_c = Σ_s softmax_s(score_c(q, k_s)) value_sc

    Shen et al. 2018, "Multi-dimensional Attention", https://arxiv.org/abs/1709.04696; Choi, Cho and Bengio 2018,
    "Fine-grained attention", https://arxiv.org/abs/1803.11407
    Channels are heads with one-dimensional values: weights are (batch, channels, queries, keys). `hidden` is the size of the
    layer, by default that of the key. Unlike the papers, the activation is tanh and there are no biases.
    Cost: time O(T S hidden channels), memory T S (hidden + channels).
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        value: int | None = None,
        *,
        size: int | None = None,
        hidden: int | None = None,
        **options: Any,
    ):
        key = query if key is None else key
        channels = size or (key if value is None else value)
        score = Channels(size or query, size or key, channels, hidden)
        super().__init__(query, key, value, size=size, score=score, **options)
        self.heads = self.size

    def remember(
        self, encoded: Encoded | Float[Tensor, "batch time key"], values: Tensor | None = None, first: int = 0
    ) -> Memory:
        """The memory: keys projected to the hidden layer, shared by all channels, and values split by channel."""
        memory = super().remember(encoded, values, first)
        return memory._replace(values=memory.values[:, 0].mT[..., None])

    def split(self, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch channels time size"]:
        """Broadcast the data to every channel: a view, nothing is copied."""
        return data[:, None].expand(-1, self.size, -1, -1)

    def merge(self, context: Float[Tensor, "batch channels queries 1"]) -> Float[Tensor, "batch queries channels"]:
        """Concatenate the channels."""
        return context[..., 0].mT


class Channels(Additive):
    """Additive score whose hidden layer serves all channels, with an output for each.

    score_c(q, k) = v_cᵀ tanh(W q + U k)
    """

    def __init__(self, query: int, key: int, channels: int, hidden: int | None = None):
        super().__init__(query, key, hidden)
        self.v = PerHead(hidden or key, 1, channels)

    def prepare(self, key: Float[Tensor, "batch channels keys key"]) -> Float[Tensor, "batch 1 keys hidden"]:
        """U k: the same for every channel, so it is computed for one."""
        return super().prepare(key[:, :1])

    def project(self, query: Float[Tensor, "batch channels queries query"]) -> Float[Tensor, "batch 1 queries hidden"]:
        """W q: the same for every channel, so it is computed for one."""
        return super().project(query[:, :1])

    def forward(
        self, query: Float[Tensor, "batch channels queries query"], prepared: Float[Tensor, "batch 1 keys hidden"]
    ) -> Float[Tensor, "batch channels queries keys"]:
        hidden = torch.tanh(self.project(query)[:, 0, :, None] + prepared[:, 0, None])  # batch queries keys hidden
        return (hidden @ self.v.weight[:, 0].mT).movedim(-1, 1)
