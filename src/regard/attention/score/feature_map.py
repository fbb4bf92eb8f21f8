"""Feature map: a product of positive features, the score of linear attention."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score import same_size

FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    # elu(x) + 1, which is exp(x) below zero; written so that no small exp(x) is lost beside a one
    "elu": lambda data: torch.relu(data) + data.clamp_max(0).exp(),
    "relu": torch.relu,
}
"""What each φ does to one number of a vector; never below zero."""


@dataclass(frozen=True)
class FeatureMap:
    """Compare a query and a key by the product of their features, which are never negative.

        score(q, k) = φ(q)ᵀ φ(k),    φ(x) = elu(x) + 1

    Katharopoulos et al. 2020, eq. 4 and 7, https://arxiv.org/abs/2006.16236
    Shared out by SumToOne this is linear attention: the products may be taken in another order, and are by the linear
    kernel. phi="relu" takes max(0, x) for φ; a query without a positive number then reads nothing.
    Cost: time O(T S d), memory T S; with SumToOne, by the linear kernel, time O((T + S) d²) and no T S.
    """

    one_size: ClassVar[bool] = True
    phi: str = "elu"

    def __post_init__(self) -> None:
        if self.phi not in FEATURES:
            raise ValueError(f"FeatureMap needs phi to be one of {', '.join(FEATURES)}, got {self.phi!r}")

    def prepare(self, key: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys dim"]:
        """φ(k): the key's features."""
        return FEATURES[self.phi](key)

    def project(self, query: Float[Tensor, "batch heads queries dim"]) -> Float[Tensor, "batch heads queries dim"]:
        """φ(q): the query's features."""
        return FEATURES[self.phi](query)

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        same_size("FeatureMap", query.shape[-1], prepared.shape[-1])
        return self.project(query) @ prepared.mT
