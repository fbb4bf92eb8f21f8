"""Local attention over all keys, as two stages: a window scope, and a normaliser with a Gaussian around its centre.

Windows computes the same from gathered keys. This form serves the trace, which shows attention stage by stage, and the
request that a kernel takes.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.normalise import Allowed, Scores
from regard.attention.scope import Offset, Scope
from regard.attention.types import Normaliser


@dataclass(frozen=True, eq=False)
class WindowScope(Scope):
    """Scope of the keys within the query's window.

        allowed(q, k)  ⇔  |k - p_q| ≤ width

    The mechanism places the centre p_q; `first` is the position of the first query.
    """

    centre: Float[Tensor, "batch queries"]
    width: int
    first: Offset = 0

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        first = self.first[:, None, None, None] if isinstance(self.first, Tensor) else self.first
        return (k - self.centre[b, q - first]).abs() <= self.width


@dataclass(frozen=True, eq=False)
class GaussianWindow:
    """Weights multiplied by a Gaussian around the centre.

        a_k = inner_k exp(-(k - p)² / (2 σ²)),  σ = width / 2

    `inner` is the normaliser of the mechanism. With `renormalise` the weights are divided by their sum.
    """

    inner: Normaliser
    centre: Float[Tensor, "batch queries"]
    width: int
    renormalise: bool = False

    @property
    def sums_to_one(self) -> bool:
        """True if the weights of a query that may see any key always sum to one."""
        return self.renormalise

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        shares = self.inner(scores, allowed)
        assert isinstance(shares, Tensor), "a trace has no stochastic normaliser"
        shares = shares * self.bell(scores.shape[-1])[:, None].to(shares.dtype)
        if not self.renormalise:
            return shares
        total = shares.sum(-1, keepdim=True)
        return shares / torch.where(total > 0, total, 1.0)

    def some(self, queries: slice) -> "GaussianWindow":
        """This normaliser for a slice of the queries."""
        return replace(self, centre=self.centre[:, queries])

    def bell(self, keys: int) -> Float[Tensor, "batch queries keys"]:
        """The Gaussian factor of each key's weight."""
        distance = torch.arange(keys, device=self.centre.device) - self.centre[..., None]
        return torch.exp(-distance.square() / (2 * (self.width / 2) ** 2))
