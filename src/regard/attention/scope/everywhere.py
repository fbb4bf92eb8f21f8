"""Everywhere: global attention, without a mask."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from regard.attention.scope import Offset, Scope


@dataclass(frozen=True)
class Everywhere(Scope):
    """Every query sees every key: "global" attention.

        allowed(q, k)  ⇔  true

    Luong, Pham and Manning 2015, section 3.1, https://arxiv.org/abs/1508.04025
    Cost: no mask is formed, and none is applied.
    """

    relative: ClassVar[bool] = True

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return torch.ones_like(k, dtype=torch.bool)

    def allowed(self, batch: int, heads: int, queries: int, keys: int, offset: Offset, device: torch.device) -> None:
        """None: nothing is masked."""
