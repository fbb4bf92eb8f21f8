"""Encoders: token ids in, one vector per token out.

Each returns Encoded(data, keep, final, tokens). `final` is a tuple of (batch, layers, size): initial states for a recurrent
decoder, from which `summary` takes the summary vector for a decoder without attention. `tokens` are the source's, for a
decoder that copies. Picture encoders (`backbones.py`) return the `grid` of a feature map in place of tokens.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.types import Encoded
from regard.data.batch import Padded


def unpack_source(source: Padded, kind: str) -> tuple[Int[Tensor, "batch time"], Bool[Tensor, "batch time"]]:
    """Tokens of a source and their padding mask; raises for packed rows, which this encoder would read across."""
    if source.documents is not None:
        raise ValueError(
            f"a {kind} encoder reads one example a row, got packed rows; give each a row (train.packing_length=0), or use "
            "the transformer encoder"
        )
    return source.data, source.keep


def find_summary(encoded: Encoded) -> Float[Tensor, "batch size"]:
    """Summary vector of the source: the top layer of the first final state."""
    vector: Tensor = encoded.final[0][:, -1]
    return vector
