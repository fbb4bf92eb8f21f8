"""Padding scope: the padding mask."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True, eq=False)
class Padding(Scope):
    """Padding mask: the keys that are no padding of a batch's shorter rows.

        allowed(q, k)  ⇔  keep[b, k]

    Cost: one mask of batch x keys, shared by all heads and queries.
    """

    keep: Bool[Tensor, "batch keys"]

    def __post_init__(self) -> None:
        if self.keep.dtype != torch.bool:
            raise TypeError(
                f"Padding needs a boolean mask, True where a key may be seen, got {self.keep.dtype}; "
                "compare it with something (mask > 0), or use Padding.from_lengths"
            )
        if self.keep.ndim != 2:
            raise ValueError(f"Padding needs a mask of (batch, keys), got {tuple(self.keep.shape)}")

    @classmethod
    def from_lengths(cls, lengths: Int[Tensor, " batch"], keys: int | None = None) -> "Padding":
        """The first `lengths[b]` keys of each row b."""
        longest = int(lengths.max()) if keys is None else keys
        return cls(torch.arange(longest, device=lengths.device)[None] < lengths[:, None])

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.keep[b, k]

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        if self.keep.shape[0] != batch or self.keep.shape[1] != keys:
            raise ValueError(
                f"Padding was made for {tuple(self.keep.shape)} (batch, keys), and met a batch of {batch} with {keys} keys"
            )

    @classmethod
    def sample(cls, batch: int, keys: int) -> "Padding":
        """Rows of decreasing length: all keys, one less, two less, and so on, then again."""
        return cls.from_lengths(keys - torch.arange(batch) % keys, keys)
