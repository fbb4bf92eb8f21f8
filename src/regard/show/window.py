"""A window as two stages: a scope that hides what is outside it, and a normaliser that dims what is far from its centre."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.normalise import Allowed, Scores
from regard.attention.scope import Scope
from regard.attention.types import Memory, Normaliser
from regard.attention.windows import Windows, lengths


@dataclass(frozen=True, eq=False)
class Within(Scope):
    """Keys in the window of the query.

        allowed(q, k)  ⇔  |k - p_q| ≤ width

    The centre p_q is where the mechanism has placed it.
    """

    centre: Float[Tensor, "batch queries"]
    width: int

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (k - self.centre[b, q]).abs() <= self.width


@dataclass(frozen=True, eq=False)
class Dimmed:
    """Shares that fall off with the distance from the centre.

        a_k = inner_k exp(-(k - p)² / (2 σ²)),  σ = width / 2

    `inner` is the normaliser of the mechanism.
    """

    inner: Normaliser
    centre: Float[Tensor, "batch queries"]
    width: int
    sums_to_one = False

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        shares = self.inner(scores, allowed)
        assert isinstance(shares, Tensor), "what is shown is not drawn"
        return shares * self.bell(scores.shape[-1])[:, None]

    def bell(self, keys: int) -> Float[Tensor, "batch queries keys"]:
        """What the share of each key is multiplied by."""
        distance = torch.arange(keys) - self.centre[..., None]
        return torch.exp(-distance.square() / (2 * (self.width / 2) ** 2))


def apart(module: Windows, query: Float[Tensor, "batch queries query"], memory: Memory) -> dict[str, Any]:
    """The stages of an attention through a window, the window among them."""
    if module.centre is None:
        return {"score": module.score, "normalise": module.normalise, "scope": module.scope}
    centre = module.centre(query, lengths(memory), 0)
    scope = Within(centre, module.width)
    normalise = Dimmed(module.normalise, centre, module.width) if module.centre.gaussian else module.normalise
    return {"score": module.score, "normalise": normalise, "scope": scope}
