"""Dilated scope: every n-th key."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class Dilated(Scope):
    """Keys a whole number of strides away from the query.

        allowed(q, k)  ⇔  (q - k) mod stride = 0

    Child et al. 2019, section 4.3, the second head of "strided" attention, https://arxiv.org/abs/1904.10509
    Unlike the paper, keys after the query are seen too: `Causal() & Dilated(n)` is the paper's.
    Cost: T S / stride scores are wanted; without a kernel that skips, T S are computed.
    """

    relative: ClassVar[bool] = True

    stride: int = 2

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise ValueError(f"Dilated needs a stride of 1 or more, got {self.stride}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q - k) % self.stride == 0
