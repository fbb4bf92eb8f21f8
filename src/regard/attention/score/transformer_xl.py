"""Transformer-XL's relative score: a content term and a position term."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.per_head import PerHead, project_heads
from regard.attention.positions.sinusoidal import encode_sinusoidal
from regard.attention.scope import Offset
from regard.attention.score import build_positions, require_same_size, require_size


class TransformerXl(nn.Module):
    """Scaled dot product with the key, plus one with a projected sinusoidal encoding of its relative position.

        score(q at i, k at j) = ((q + u)ᵀ k + (q + v)ᵀ W R_{i-j}) / √d

    u and v are learned biases of the query, per head. R_p is a sinusoidal encoding of `waves` numbers.
    Dai et al. 2019, section 3.3, https://arxiv.org/abs/1901.02860; 1/√d, or `scale`, is that of their code.
    Unlike the paper, R is as wide as a key and not as the model, unless `waves` says so. And there is no relative shift:
    since sin(i-j) = sin i cos j - cos i sin j, it is enough to rotate Wᵀ (q + v) by the query's position and to concatenate
    R_j with the key, and the score is one dot product.
    Cost: time O(T S (d + waves)), memory T S + (T + S) (d + waves); a fused kernel needs no T S.
    """

    positional: ClassVar[bool] = True
    one_size: ClassVar[bool] = True

    def __init__(self, key: int, heads: int = 1, waves: int | None = None, scale: float | None = None):
        super().__init__()
        waves = key + key % 2 if waves is None else waves
        if waves < 2 or waves % 2:
            raise ValueError(f"TransformerXl needs an even number of waves, sines and cosines, 2 or more, got {waves}")
        self.key, self.waves, self.scale = key, waves, scale
        self.W = PerHead(waves, key, heads)
        self.u, self.v = nn.Parameter(torch.empty(heads, 1, key)), nn.Parameter(torch.empty(heads, 1, key))
        for bias in (self.u, self.v):
            nn.init.uniform_(bias, -(key**-0.5), key**-0.5)

    def prepare(self, key: Float[Tensor, "batch heads keys key"], first: int = 0) -> Float[Tensor, "batch heads keys both"]:
        """[k; R_j]."""
        require_size("TransformerXl", "key", self.key, key.shape[-1])
        R = encode_sinusoidal(build_positions(key.shape[2], first, key.device), self.waves).to(key.dtype)
        return torch.cat((key, R[:, None].expand(*key.shape[:2], -1, -1)), dim=-1)

    def project(
        self, query: Float[Tensor, "batch heads queries query"], offset: Offset = 0
    ) -> Float[Tensor, "batch own_heads queries both"]:
        """[q + u; Wᵀ (q + v) rotated] / √d."""
        require_same_size("TransformerXl", query.shape[-1], self.key)
        scale = self.key**-0.5 if self.scale is None else self.scale
        about = project_heads((query + self.v) * scale, self.W.weight.mT)
        return torch.cat(((query + self.u) * scale, rotate(about, offset)), dim=-1)

    def forward(
        self,
        query: Float[Tensor, "batch heads queries query"],
        prepared: Float[Tensor, "batch key_heads keys both"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch own_heads queries keys"]:
        return self.project(query, offset) @ prepared.mT

    def extra_repr(self) -> str:
        return f"waves={self.waves}"


def rotate(about: Float[Tensor, "batch heads queries waves"], offset: Offset) -> Float[Tensor, "batch heads queries waves"]:
    """Rotate `about` so that its product with R_j is that of `about` with R_{i-j}, for i = offset, offset + 1, ...

        a sin(i-j) + b cos(i-j) = (b sin i - a cos i) sin j + (a sin i + b cos i) cos j

    where a and b are its components of one frequency, and the angles are of that frequency.
    """
    wide = torch.promote_types(about.dtype, torch.float32)
    R = encode_sinusoidal(build_positions(about.shape[2], offset, about.device), about.shape[-1]).to(wide)[:, None]
    (sin, cos), (a, b) = (torch.unflatten(tensor, -1, (-1, 2)).unbind(-1) for tensor in (R, about))
    return torch.stack((b * sin - a * cos, a * sin + b * cos), dim=-1).flatten(-2).to(about.dtype)
