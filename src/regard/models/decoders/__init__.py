"""Decoders: read what an encoder found, and write a target one token at a time or, taught, all at once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.types import Attended, Memory
from regard.tree import beside


class Remembered(NamedTuple):
    """A source as a decoder reads it, batch first: one memory for each attention by its name, and what else it needs."""

    memories: dict[str, Memory]
    initial: tuple[Tensor, ...] = ()
    """The states that a recurrent decoder starts from, (batch, layers, size) each."""
    summary: Any = ()
    """The source in one vector, for a decoder without attention that sees it at every step."""
    tokens: Any = ()
    """The target's token for each place of the source, where a decoder copies it."""


def shown(attended: Mapping[str, Attended], weights: bool) -> dict[str, Attended]:
    """What each attention saw, without the weights that a decoder needed itself and nobody asked for."""
    return dict(attended) if weights else {name: each._replace(weights=None) for name, each in attended.items()}


def spread(vectors: Float[Tensor, "sources size"], rows: int) -> Float[Tensor, "rows size"]:
    """A source's vector for each of its beams."""
    beams = rows // vectors.shape[0]
    return vectors if beams == 1 else beside(vectors, beams)
