"""Models of pictures that do not write: they classify, find, answer and retrieve what is shown.

Each takes an encoder of pictures and, asked for weights, says by name where it looked: (batch, heads, queries, places), with
places row after row as the encoder's map has them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.types import Attended, Memory
from regard.models.encoders.backbones import PictureEncoder as PictureEncoder

Weights = Mapping[str, Float[Tensor, "batch heads queries places"]]
"""Where each attention looked, by the path of its module."""
NOTHING: Weights = MappingProxyType({})


class Answer(NamedTuple):
    """A score for each label, and where was looked."""

    logits: Float[Tensor, "batch labels"]
    weights: Weights = NOTHING


def look(attention: Attention, query: Float[Tensor, "batch queries query"], memory: Memory, weights: bool) -> Attended:
    """Ask an attention from its first step on, whether it carries something from query to query or not."""
    found: Attended = attention(query, memory, attention.start(memory), offset=0, weights=weights)
    return found


def seen(attended: Mapping[str, Attended]) -> Weights:
    """The weights of those attentions that were asked for them."""
    return {name: each.weights for name, each in attended.items() if each.weights is not None}


def needed(made: Attention | None, who: str) -> Attention:
    """An attention where there has to be one."""
    if made is None:
        raise ValueError(f"{who} reads by an attention, and got none; name one, such as transformer or additive")
    return made
