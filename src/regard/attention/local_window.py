"""A window as two stages: a scope that hides what is outside it, and a normaliser that dims what is far from its centre.

Windows computes the same from gathered keys. Here it is over all keys: for those who look at it stage by stage, and as the
question that a kernel is asked.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.normalise import Allowed, Scores
from regard.attention.scope import Offset, Scope
from regard.attention.types import Normaliser


@dataclass(frozen=True, eq=False)
class Within(Scope):
    """Keys in the window of the query.

        allowed(q, k)  ⇔  |k - p_q| ≤ width

    The centre p_q is where the mechanism has placed it; the first query stands at `first`.
    """

    centre: Float[Tensor, "batch queries"]
    width: int
    first: Offset = 0

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        first = self.first[:, None, None, None] if isinstance(self.first, Tensor) else self.first
        return (k - self.centre[b, q - first]).abs() <= self.width


@dataclass(frozen=True, eq=False)
class Dimmed:
    """Shares that fall off with the distance from the centre.

        a_k = inner_k exp(-(k - p)² / (2 σ²)),  σ = width / 2

    `inner` is the normaliser of the mechanism. With `renormalise` they are divided by their sum.
    """

    inner: Normaliser
    centre: Float[Tensor, "batch queries"]
    width: int
    renormalise: bool = False

    @property
    def sums_to_one(self) -> bool:
        """Whether the shares of a query that sees anything always add up to one."""
        return self.renormalise

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        shares = self.inner(scores, allowed)
        assert isinstance(shares, Tensor), "what is shown is not drawn"
        shares = shares * self.bell(scores.shape[-1])[:, None].to(shares.dtype)
        if not self.renormalise:
            return shares
        total = shares.sum(-1, keepdim=True)
        return shares / torch.where(total > 0, total, 1.0)

    def some(self, queries: slice) -> "Dimmed":
        """The same for some of the queries."""
        return replace(self, centre=self.centre[:, queries])

    def bell(self, keys: int) -> Float[Tensor, "batch queries keys"]:
        """What the share of each key is multiplied by."""
        distance = torch.arange(keys, device=self.centre.device) - self.centre[..., None]
        return torch.exp(-distance.square() / (2 * (self.width / 2) ** 2))
