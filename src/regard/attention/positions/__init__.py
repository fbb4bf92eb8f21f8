"""Position encodings added to or concatenated with the input."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard import registry
from regard.attention.scope import Offset

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.positions.learned import Learned
    from regard.attention.positions.sinusoidal import Sinusoidal

__all__ = ["Learned", "Positions", "Sinusoidal"]


class Positions(nn.Module, ABC):
    """Position encoding: a vector for each position, added to the input or concatenated with it.

    join="add" needs vectors as wide as the input; with join="concat" the result is wider by `size`. `offset` is the position
    of the first element: one number, or one per batch row; `places` are the positions themselves where they are not
    consecutive.
    """

    def __init__(self, size: int, join: Literal["add", "concat"] = "add"):
        super().__init__()
        if size < 1:
            raise ValueError(f"{type(self).__name__} needs a size of 1 or more, got {size}")
        if join not in ("add", "concat"):
            raise ValueError(f"join needs to be 'add' or 'concat', got {join!r}")
        self.size, self.join = size, join

    @abstractmethod
    def at(self, positions: Int[Tensor, "*places"]) -> Float[Tensor, "*places size"]:
        """The vectors of these positions."""

    def width(self, data: int) -> int:
        """The width of the result for an input `data` wide."""
        return data if self.join == "add" else data + self.size

    def forward(
        self,
        data: Float[Tensor, "batch time dim"],
        offset: Offset = 0,
        places: Int[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time out"]:
        batch, time, dim = data.shape
        if self.join == "add" and dim != self.size:
            raise ValueError(
                f"{type(self).__name__} of size {self.size} cannot be added to an input of size {dim}; "
                f"build it with size {dim}, or with join='concat'"
            )
        first = offset[:, None] if isinstance(offset, Tensor) else offset
        along = torch.arange(time, device=data.device)[None] + first if places is None else places
        vectors = self.at(along).to(data.dtype)
        if self.join == "add":
            return data + vectors
        return torch.cat((data, vectors.expand(batch, time, self.size)), dim=-1)


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        return registry.find_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
