"""Rotary position embedding, RoPE."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.scope import Offset
from regard.attention.score import build_positions, require_same_size
from regard.attention.score.scaled_dot import ScaledDot


@dataclass(frozen=True)
class Rotary:
    """Scaled dot product of a query and a key rotated by their positions, so that it depends on their distance.

        score(q at i, k at j) = (R_i q)ᵀ R_j k / √d = qᵀ R_{j-i} k / √d

    R_p rotates each pair of dimensions, the n-th of d/2, by an angle of p base^{-2n/d}.
    Su et al. 2021, section 3.2.2 and eq. 34, https://arxiv.org/abs/2104.09864
    A pair is one dimension of the first half and one of the second, as in most models; the paper's adjacent pairs are
    interleaved=True. Of an odd number of dimensions the last is not rotated. `scale` replaces 1/√d if given.
    Cost: that of ScaledDot, and O((T + S) d) for the rotation; a fused kernel needs no T S.
    """

    positional: ClassVar[bool] = True
    one_size: ClassVar[bool] = True
    base: float = 10_000.0
    interleaved: bool = False
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.base <= 0:
            raise ValueError(f"Rotary needs a base above 0, got {self.base}")

    def prepare(self, key: Float[Tensor, "batch heads keys dim"], first: int = 0) -> Float[Tensor, "batch heads keys dim"]:
        """R_j k."""
        return self.turn(key, first)

    def project(
        self, query: Float[Tensor, "batch heads queries dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch heads queries dim"]:
        """R_i q / √d."""
        return ScaledDot(self.scale).project(self.turn(query, offset))

    def __call__(
        self,
        query: Float[Tensor, "batch heads queries query"],
        prepared: Float[Tensor, "batch key_heads keys dim"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("Rotary", query.shape[-1], prepared.shape[-1])
        return self.project(query, offset) @ prepared.mT

    def turn(self, vectors: Float[Tensor, "batch heads time dim"], first: Offset) -> Float[Tensor, "batch heads time dim"]:
        """Rotate vectors by their positions, from `first` on, in float32 at least with float64 angles."""
        pairs = vectors.shape[-1] // 2
        wide = torch.promote_types(vectors.dtype, torch.float32)
        pace = self.base ** -(torch.arange(pairs, device=vectors.device, dtype=torch.float64) / pairs)
        angle = build_positions(vectors.shape[2], first, vectors.device)[:, None, :, None] * pace  # batch 1 time pairs
        cos, sin = angle.cos().to(wide), angle.sin().to(wide)
        layout = (pairs, 2) if self.interleaved else (2, pairs)
        axis = -1 if self.interleaved else -2
        left, right = torch.unflatten(vectors[..., : 2 * pairs], -1, layout).unbind(axis)
        turned = torch.stack((left * cos - right * sin, left * sin + right * cos), dim=axis).flatten(-2)
        return torch.cat((turned.to(vectors.dtype), vectors[..., 2 * pairs :]), dim=-1)
