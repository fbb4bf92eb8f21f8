"""Block-diagonal scope: the query's own block of the sequence."""

from dataclasses import dataclass

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class Blocks(Scope):
    """Keys in the same block as the query: a block-diagonal mask with blocks of `size` positions.

        allowed(q, k)  ⇔  ⌊q / size⌋ = ⌊k / size⌋

    Liu et al. 2018, section 4.2.4, "local attention", https://arxiv.org/abs/1801.10198
    Cost: T size scores are wanted; without a kernel that skips, T S are computed.
    """

    size: int = 3

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"Blocks needs blocks of 1 or more positions, got {self.size}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return q // self.size == k // self.size
