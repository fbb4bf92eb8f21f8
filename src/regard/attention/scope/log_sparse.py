"""Log-sparse scope: keys at distances of 0, 1, 2, 4, 8, ..."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class LogSparse(Scope):
    """Keys whose distance from the query is a power of two, and those close by.

        allowed(q, k)  ⇔  |q - k| ≤ local,  or  |q - k| is a power of two

    Li et al. 2019, section 4.2, https://arxiv.org/abs/1907.00235; `local` is the local attention of its figure 3.
    Unlike the paper, keys after the query are seen too: `Causal() & LogSparse()` is the paper's.
    Each query sees about log2 S keys on a side, so that a stack of log2 S layers connects any two positions.
    Cost: T log S scores are wanted; without a kernel that skips, T S are computed.
    """

    relative: ClassVar[bool] = True

    local: int = 1

    def __post_init__(self) -> None:
        if self.local < 0:
            raise ValueError(f"LogSparse needs local keys of 0 or more, got {self.local}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        distance = (q - k).abs()
        return (distance <= self.local) | (distance & (distance - 1) == 0)
