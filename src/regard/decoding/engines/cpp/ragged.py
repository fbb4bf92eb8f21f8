"""Ragged batch: sources without padding, one row for each token, source after source."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.batch import Padded


class RaggedBatch(NamedTuple):
    """Tokens of a ragged batch, their positions and sources, and the length of each source."""

    tokens: Int[Tensor, " rows"]
    places: Int[Tensor, " rows"]
    sources: Int[Tensor, " rows"]
    counts: Int[Tensor, " batch"]

    @property
    def pointers(self) -> tuple[int, int, int, int]:
        """Addresses for the C++ engine; this tensor record has to live for as long as they are used."""
        return self.tokens.data_ptr(), self.places.data_ptr(), self.counts.data_ptr(), len(self.counts)

    def out(self, data: Float[Tensor, "rows size"], keep: Bool[Tensor, "batch time"]) -> Float[Tensor, "batch time size"]:
        """Scatter rows back to a padded batch; zeros at padding."""
        if len(data) == keep.numel():
            return data.view(*keep.shape, -1)
        return torch.zeros(*keep.shape, data.shape[1]).index_put_((self.sources, self.places), data)


def remove_padding(source: Padded) -> RaggedBatch:
    """Remove the padding of a batch."""
    tokens, keep = source.data, source.keep
    sources, places = (tensor.contiguous() for tensor in keep.nonzero(as_tuple=True))
    return RaggedBatch(tokens[sources, places], places, sources, keep.sum(1))
