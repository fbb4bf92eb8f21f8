"""Feature-map score of linear attention."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score import require_same_size

FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    # elu(x) + 1, which is exp(x) below zero; written so that no small exp(x) is rounded away beside a one
    "elu": lambda data: torch.relu(data) + data.clamp_max(0).exp(),
    "relu": torch.relu,
}
"""The elementwise feature maps φ by name; none is negative."""


@dataclass(frozen=True)
class FeatureMap:
    """Dot product of the feature maps of query and key, which are never negative.

        score(q, k) = φ(q)ᵀ φ(k),    φ(x) = elu(x) + 1

    Katharopoulos et al. 2020, eq. 4 and 7, https://arxiv.org/abs/2006.16236
    Normalised by SumToOne this is linear attention: the linear kernel takes the products in another order. phi="relu" is
    max(0, x); a query without a positive number then has zero weights.
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
        require_same_size("FeatureMap", query.shape[-1], prepared.shape[-1])
        return self.project(query) @ prepared.mT
