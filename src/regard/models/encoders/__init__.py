"""Encoders: token numbers in, one vector for each out.

Each gives Encoded(data, keep, final, tokens). `final` is a tuple of (batch, layers, size): the states that a recurrent
decoder may start from, of which `summary` takes one vector for a decoder that wants the whole source in one. `tokens` are
what was read, for a decoder that copies. Encoders of pictures (`pictures.py`) give the `grid` of a map in place of tokens.
"""

from jaxtyping import Float
from torch import Tensor

from regard.attention.types import Encoded


def summary(encoded: Encoded) -> Float[Tensor, "batch size"]:
    """The source in one vector: the last layer of the first of the final states."""
    vector: Tensor = encoded.final[0][:, -1]
    return vector
