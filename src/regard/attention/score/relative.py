"""Relative position score, Shaw's, for the keys alone."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.per_head import PerHead
from regard.attention.scope import Offset
from regard.attention.score import compute_relative_positions, require_same_size, require_size
from regard.attention.score.scaled_dot import ScaledDot


class Relative(nn.Module):
    """Scaled dot product with relative position embeddings added to the keys.

        score(q at i, k at j) = qᵀ (k + a_c) / √d,    c = max(-window, min(window, j - i))

    Shaw, Uszkoreit and Vaswani 2018, eq. 4 and section 3.2, https://arxiv.org/abs/1803.02155
    Distances are clipped to `window`. Unlike the paper, nothing is added to the values: the paper's own ablation
    (section 4.3) finds the same BLEU without it, and `shaw` has both. `scale` replaces 1/√d.
    Cost: time O(T S d + T window d), memory T S + T window: q meets the embedding of each distance once, and the result is
    gathered for each key; no T S d.
    """

    positional: ClassVar[bool] = True
    one_size: ClassVar[bool] = True

    def __init__(self, key: int, window: int = 16, heads: int = 1, scale: float | None = None):
        super().__init__()
        if window < 0:
            raise ValueError(f"{type(self).__name__} needs a window of 0 or more positions on either side, got {window}")
        self.key, self.window, self.scale = key, window, scale
        self.a = PerHead(key, 2 * window + 1, heads)

    def prepare(self, key: Float[Tensor, "batch heads keys key"], first: int = 0) -> Float[Tensor, "batch heads keys key"]:
        """k itself: its distance depends on the query."""
        require_size(type(self).__name__, "key", self.key, key.shape[-1])
        return key

    def project(
        self, query: Float[Tensor, "batch heads queries dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch heads queries dim"]:
        """q / √d."""
        return ScaledDot(self.scale).project(query)

    def forward(
        self,
        query: Float[Tensor, "batch heads queries query"],
        prepared: Float[Tensor, "batch key_heads keys dim"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch scored_heads queries keys"]:
        require_same_size(type(self).__name__, query.shape[-1], prepared.shape[-1])
        projected = self.project(query)
        near: Tensor = self.a(projected)  # batch heads queries distances
        which = self.which(query.shape[2], prepared.shape[2], offset, query.device)
        return projected @ prepared.mT + near.gather(-1, which.expand(*near.shape[:3], -1))

    def which(self, queries: int, keys: int, offset: Offset, device: torch.device) -> Int[Tensor, "#batch 1 queries keys"]:
        """Index of each clipped relative position key - query; 0 is `window` or more before the query."""
        distance = compute_relative_positions(queries, keys, offset, device)
        return (distance.clamp(-self.window, self.window) + self.window)[:, None]

    def extra_repr(self) -> str:
        return f"window={self.window}"
