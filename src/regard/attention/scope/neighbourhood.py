"""Neighbourhood: a two-dimensional sliding window."""

from dataclasses import dataclass

from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True)
class Neighbourhood(Scope):
    """Keys at most `window` rows and `window` columns away, where positions are a grid of `width` columns, row after row.

        allowed(q, k)  ⇔  |⌊q / width⌋ - ⌊k / width⌋| ≤ window  and  |q mod width - k mod width| ≤ window

    Parmar et al. 2018, "local self-attention" of pictures, https://arxiv.org/abs/1802.05751; Hassani et al. 2023,
    "neighborhood attention", https://arxiv.org/abs/2204.07143. Unlike the latter, a window at the border is cut off and not
    moved inwards, so that a query in a corner sees (window + 1)² keys.
    Cost: T (2 window + 1)² scores are wanted; without a kernel that skips, T S are computed.
    """

    width: int = 4
    window: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Neighbourhood needs a grid of 1 or more columns, got {self.width}")
        if self.window < 0:
            raise ValueError(f"Neighbourhood needs a window of 0 or more rows and columns on either side, got {self.window}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        rows = (q // self.width - k // self.width).abs() <= self.window
        columns = (q % self.width - k % self.width).abs() <= self.window
        return rows & columns
