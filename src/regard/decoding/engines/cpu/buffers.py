"""Room for what a step finds: large results cost more to make room for than to compute."""

import torch
from jaxtyping import Float
from torch import Tensor


class Rooms:
    """One room for each width. Each batch has its own, so that several may be searched at once."""

    def __init__(self) -> None:
        self.held: dict[int, Float[Tensor, "rows width"]] = {}

    def __call__(self, rows: int, width: int) -> Float[Tensor, "rows width"]:
        """Room that may hold what the last such call was given: only for what is used up before the next."""
        held = self.held.get(width)
        if held is None or held.shape[0] < rows:
            held = self.held[width] = torch.empty(rows, width)
        return held if held.shape[0] == rows else held[:rows]
