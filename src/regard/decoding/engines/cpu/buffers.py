"""Reusable output buffers: large results cost more to allocate than to compute."""

import torch
from jaxtyping import Float
from torch import Tensor


class Buffers:
    """Output buffers, one for each width; each batch has its own, so that several may be searched at once."""

    def __init__(self) -> None:
        self.held: dict[int, Float[Tensor, "rows width"]] = {}

    def __call__(self, rows: int, width: int) -> Float[Tensor, "rows width"]:
        """Buffer that may alias the result of the last such call: only for short-lived results."""
        held = self.held.get(width)
        if held is None or held.shape[0] < rows:
            held = self.held[width] = torch.empty(rows, width)
        return held if held.shape[0] == rows else held[:rows]
