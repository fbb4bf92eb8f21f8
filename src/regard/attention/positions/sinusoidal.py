"""Sinusoidal position encoding."""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from regard.attention.positions import Positions


class Sinusoidal(Positions):
    """Sines and cosines with wavelengths from 2π to 2π base: no parameters, and no longest sequence.

        PE(p)_{2i} = sin(p / base^{2i/d}),    PE(p)_{2i+1} = cos(p / base^{2i/d})

    A step of k rotates each pair by a fixed angle, so PE(p + k) is a linear function of PE(p).
    Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762
    Cost: time and memory O(T d).
    """

    def __init__(self, size: int, join: Literal["add", "concat"] = "add", base: float = 10_000.0):
        super().__init__(size, join)
        self.base = base

    def at(self, positions: Int[Tensor, "*places"]) -> Float[Tensor, "*places size"]:
        return encode_sinusoidal(positions, self.size, self.base).to(torch.get_default_dtype())


def encode_sinusoidal(
    positions: Real[Tensor, "*places"], size: int, base: float = 10_000.0
) -> Float[Tensor, "*places size"]:
    """The encoding of these positions in float64, in which a far position still has an exact angle."""
    even = torch.arange((size + 1) // 2, device=positions.device, dtype=torch.float64) * (2 / size)
    angles = positions[..., None] * torch.exp(-math.log(base) * even)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[..., :size]  # sines and cosines alternate
