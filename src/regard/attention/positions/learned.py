"""Learned positions: an embedding table over positions."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.positions import Positions
from regard.attention.scope import Offset


class Learned(Positions):
    """Learned position embedding: a table with one vector for each of `limit` positions.

        PE(p) = table[p]

    Gehring et al. 2017, section 3.1, https://arxiv.org/abs/1705.03122
    Positions that no training example reached keep their random initialisation; a longer sequence is refused.
    Cost: time O(T d), memory O(limit d).
    """

    def __init__(self, size: int, join: Literal["add", "concat"] = "add", limit: int = 1024):
        super().__init__(size, join)
        self.limit = limit
        self.table = nn.Embedding(limit, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)

    def at(self, positions: Int[Tensor, "*places"]) -> Float[Tensor, "*places size"]:
        vectors: Tensor = self.table(positions)
        return vectors

    def forward(
        self,
        data: Float[Tensor, "batch time dim"],
        offset: Offset = 0,
        places: Int[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time out"]:
        if torch.compiler.is_exporting():  # lengths are dynamic; at run time the lookup itself fails
            return super().forward(data, offset, places)
        if places is None:
            last = data.shape[1] + (int(offset.max()) if isinstance(offset, Tensor) else offset)
        else:
            last = 0 if places.is_cuda else int(places.max()) + 1  # no synchronisation with a GPU
        if last > self.limit:
            raise ValueError(
                f"Learned has vectors for {self.limit} positions, and met position {last}; "
                f"build it with limit={last} or more, or use Sinusoidal, which has no last position"
            )
        return super().forward(data, offset, places)
