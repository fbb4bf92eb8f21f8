"""Decoders: read what an encoder found, and write a target one token at a time or, taught, all at once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Attended, Memory


class Remembered(NamedTuple):
    """A source as a decoder reads it, batch first: one memory for each attention by its name, and what else it needs."""

    memories: dict[str, Memory]
    initial: tuple[Tensor, ...] = ()
    """The states that a recurrent decoder starts from, (batch, layers, size) each."""
    summary: Any = ()
    """The source in one vector, for a decoder without attention that sees it at every step."""
    tokens: Any = ()
    """The target's token for each place of the source, where a decoder copies it."""


class Output(nn.Module):
    """Logits over the vocabulary; tied, their matrix is the table of embeddings.

        logits = E x + b,  or  E (P x) + b  where x is not as wide as an embedding

    Press and Wolf 2017, https://arxiv.org/abs/1608.05859
    """

    def __init__(self, size: int, vocabulary: int, embedding: int, tie: bool):
        super().__init__()
        self.fit = nn.Linear(size, embedding, bias=False) if tie and size != embedding else nn.Identity()
        self.weight = None if tie else nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary, size)))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(
        self, data: Float[Tensor, "*rows size"], table: Float[Tensor, "vocabulary embedding"]
    ) -> Float[Tensor, "*rows vocabulary"]:
        return F.linear(self.fit(data), self.matrix(table), self.bias)

    def matrix(self, table: Float[Tensor, "vocabulary embedding"]) -> Float[Tensor, "vocabulary width"]:
        """What the fitted data is multiplied by."""
        return table if self.weight is None else self.weight


def shown(attended: Mapping[str, Attended], weights: bool) -> dict[str, Attended]:
    """What each attention saw, without the weights that a decoder needed itself and nobody asked for."""
    return dict(attended) if weights else {name: each._replace(weights=None) for name, each in attended.items()}


def spread(vectors: Float[Tensor, "sources size"], rows: int) -> Float[Tensor, "rows size"]:
    """A source's vector for each of its beams."""
    beams = rows // len(vectors)
    return vectors if beams == 1 else vectors.repeat_interleave(beams, dim=0)
