"""Landmarks: global tokens, which see every key and which every query sees."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True, eq=False)
class Landmarks(Scope):
    """Global tokens: pairs of query and key of which one is a landmark, at the `first` positions or every `every`-th.

        allowed(q, k)  ⇔  landmark(q) or landmark(k),    landmark(p)  ⇔  p < first[b] or p mod every = 0

    `first` is one number for all rows or one for each, such as the length of a question; every=0 leaves only those.
    The union with a sliding window gives known patterns: `Local(w) | Landmarks(g)` is Longformer's, global tokens and a
    window (Beltagy, Peters and Cohan 2020, section 3, https://arxiv.org/abs/2004.05150); Zaheer et al. 2020, section 2,
    https://arxiv.org/abs/2007.14062, add random keys to it. Unlike Longformer's, landmarks have no projections of their own.
    Cost: L (T + S) scores are wanted for L landmarks; without a kernel that skips, T S are computed.
    """

    first: int | Int[Tensor, " batch"] = 1
    every: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.first, int) and self.first < 0:
            raise ValueError(f"Landmarks needs 0 or more first positions, got {self.first}")
        if self.every < 0:
            raise ValueError(f"Landmarks needs every to be 1 or more, or 0 for none, got {self.every}")

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.landmark(b, q) | self.landmark(b, k)

    def landmark(self, b: Tensor, position: Tensor) -> Tensor:
        """True if a position of row b is a landmark."""
        landmark = position < (self.first[b] if isinstance(self.first, Tensor) else self.first)
        return landmark | (position % self.every == 0) if self.every else landmark

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        if isinstance(self.first, Tensor) and self.first.shape != (batch,):
            raise ValueError(
                f"Landmarks needs one number of first positions for each of {batch} rows, got {tuple(self.first.shape)}"
            )
