"""Decoders: predict a target from an encoded source, one token at a time or, with teacher forcing, all at once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.types import Attended, Memory
from regard.tree import repeat_rows


class DecoderMemory(NamedTuple):
    """Encoded source as a decoder reads it, batch first: one memory per attention by name, and initial states."""

    memories: dict[str, Memory]
    initial: tuple[Tensor, ...] = ()
    """Initial states of a recurrent decoder, (batch, layers, size) each."""
    summary: Any = ()
    """Summary vector of the source, for a decoder without attention that reads it at every step."""
    tokens: Any = ()
    """Target token of each source position, for a decoder that copies."""


def drop_weights(attended: Mapping[str, Attended], weights: bool) -> dict[str, Attended]:
    """Outputs of the attentions by name, without weights that only the decoder itself needed."""
    return dict(attended) if weights else {name: result._replace(weights=None) for name, result in attended.items()}


def repeat_for_beams(vectors: Float[Tensor, "sources size"], rows: int) -> Float[Tensor, "rows size"]:
    """Repeat each source's vector for its beams."""
    beams = rows // vectors.shape[0]
    return vectors if beams == 1 else repeat_rows(vectors, beams)
