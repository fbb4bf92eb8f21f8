"""Cosine similarity, the score of content addressing."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score import require_same_size


@dataclass(frozen=True)
class Cosine:
    """Cosine of the angle between a query and a key, scaled by β.

        score(q, k) = β qᵀ k / (‖q‖ ‖k‖)

    Graves, Wayne and Danihelka 2014, section 3.3.1, eq. 5 and 6, https://arxiv.org/abs/1410.5401
    Unlike the paper, the key strength β (`scale`) is one number and not emitted with each query. At 1 the softmax is nearly
    uniform: weights differ by a factor of e² at most.
    Cost: time O(T S d), memory T S; a fused kernel needs no T S.
    """

    one_size: ClassVar[bool] = True
    scale: float = 1.0

    def prepare(self, key: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys dim"]:
        """k / ‖k‖."""
        return _normalise_vectors(key)

    def project(self, query: Float[Tensor, "batch heads queries dim"]) -> Float[Tensor, "batch heads queries dim"]:
        """β q / ‖q‖."""
        return _normalise_vectors(query) * self.scale

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys dim"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("Cosine", query.shape[-1], prepared.shape[-1])
        return self.project(query) @ prepared.mT


def _normalise_vectors(vectors: Tensor) -> Tensor:
    """Unit vectors, normed in float32 at least; a vector of zeros stays zero."""
    wide = torch.promote_types(vectors.dtype, torch.float32)
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True, dtype=wide)
    return (vectors / torch.where(length > 0, length, 1.0)).to(vectors.dtype)
