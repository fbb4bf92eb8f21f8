"""Types for models of pictures without a decoder: classification, detection, question answering, retrieval.

Each takes a picture encoder and returns, if asked, attention weights by module path: (batch, heads, queries, positions),
with positions row-major as in the encoder's feature map.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.types import Attended, Memory
from regard.models.encoders.backbones import ImageEncoder as ImageEncoder

Weights = Mapping[str, Float[Tensor, "batch heads queries places"]]
"""Attention weights by module path."""
NO_WEIGHTS: Weights = MappingProxyType({})


class Answer(NamedTuple):
    """Logits of the labels, and attention weights."""

    logits: Float[Tensor, "batch labels"]
    weights: Weights = NO_WEIGHTS


def call_attention(
    attention: Attention, query: Float[Tensor, "batch queries query"], memory: Memory, weights: bool
) -> Attended:
    """Call an attention from its initial state, whether it is stateful or not."""
    attended: Attended = attention(query, memory, attention.start(memory), offset=0, weights=weights)
    return attended


def collect_weights(attended: Mapping[str, Attended]) -> Weights:
    """Weights of those attentions that returned them."""
    return {name: output.weights for name, output in attended.items() if output.weights is not None}


def require_attention(attention: Attention | None, name: str) -> Attention:
    """Return the attention, or raise if there is none."""
    if attention is None:
        raise ValueError(f"{name} reads by an attention, and got none; name one, such as transformer or additive")
    return attention
