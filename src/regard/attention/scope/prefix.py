"""Prefix scope: the first keys, visible to all queries."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True, eq=False)
class Prefix(Scope):
    """The first `length` keys, one number for all rows or one for each.

        allowed(q, k)  ⇔  k < length[b]

    `Causal() | Prefix(n)` is the mask of a prefix language model: bidirectional over the prefix, causal after it.
    Raffel et al. 2020, section 3.2.1 and figure 3, https://arxiv.org/abs/1910.10683
    Cost: T length scores are wanted; without a kernel that skips, T S are computed.
    """

    length: int | Int[Tensor, " batch"] = 2

    def __post_init__(self) -> None:
        if isinstance(self.length, int) and self.length < 0:
            raise ValueError(f"Prefix needs a length of 0 or more keys, got {self.length}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return k < (self.length[b] if isinstance(self.length, Tensor) else self.length)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        if isinstance(self.length, Tensor) and self.length.shape != (batch,):
            raise ValueError(f"Prefix needs one length for each of {batch} rows, got {tuple(self.length.shape)}")
