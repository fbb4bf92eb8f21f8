"""Diagonal masking: every key but the query's own."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class ExcludeSelf(Scope):
    """Diagonal mask: every key but the one at the query's own position.

        allowed(q, k)  ⇔  k ≠ q

    Shin, Lee, Yoon and Jung 2020, "diagonal masking", https://arxiv.org/abs/2004.08097
    Cost: that of a mask; nothing can be skipped.
    """

    relative: ClassVar[bool] = True

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return k != q
