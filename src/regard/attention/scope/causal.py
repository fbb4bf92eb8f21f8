"""Causal scope: the causal mask."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class Causal(Scope):
    """Causal mask: the query's own position and all before it.

        allowed(q, k)  ⇔  k ≤ q

    Vaswani et al. 2017, section 3.2.3, https://arxiv.org/abs/1706.03762
    Cost: half of the scores are wasted unless a kernel skips them.
    """

    relative: ClassVar[bool] = True

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return k <= q
