"""Local scope: a sliding window around the query."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class Local(Scope):
    """Sliding window: keys at most `window` positions away on either side, "restricted" self-attention.

        allowed(q, k)  ⇔  |q - k| ≤ window

    Vaswani et al. 2017, section 4 and table 1, where the neighbourhood is called r, https://arxiv.org/abs/1706.03762
    `Causal() & Local(r)` is the one-sided window of language models.
    Cost: T (2 window + 1) scores are wanted; without a kernel that skips, T S are computed.
    """

    relative: ClassVar[bool] = True

    window: int = 2

    def __post_init__(self) -> None:
        if self.window < 0:
            raise ValueError(f"Local needs a window of 0 or more positions on either side, got {self.window}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q - k).abs() <= self.window
