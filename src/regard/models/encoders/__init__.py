"""Encoders: token numbers in, one vector for each out.

Each gives Encoded(data, keep, final, tokens). `final` is a tuple of (batch, layers, size): the states that a recurrent
decoder may start from, of which `summary` takes one vector for a decoder that wants the whole source in one. `tokens` are
what was read, for a decoder that copies. Encoders of pictures (`pictures.py`) give the `grid` of a map in place of tokens.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.types import Encoded
from regard.data.batch import Padded


def alone(source: Padded, kind: str) -> tuple[Int[Tensor, "batch time"], Bool[Tensor, "batch time"]]:
    """The tokens of a source and where there are any, for an encoder that would read on from one example into the next."""
    if source.documents is not None:
        raise ValueError(
            f"a {kind} encoder reads one example a row, got packed rows; give each a row (train.packed=0), or use the "
            "transformer encoder"
        )
    return source.data, source.keep


def summary(encoded: Encoded) -> Float[Tensor, "batch size"]:
    """The source in one vector: the last layer of the first of the final states."""
    vector: Tensor = encoded.final[0][:, -1]
    return vector
