"""Spatial attention over the positions of a feature map."""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.masked_pool import Keep
from regard.attention.visual import Gating, Image


class Spatial(Gating):
    """Spatial attention, the spatial half of CBAM: position weights by a convolution of channel-wise mean and maximum.

        a = σ(f [mean over c of x; max over c of x]),    y_cp = a_p x_cp

    with f a convolution of `kernel` x `kernel` positions to one channel.
    Woo et al. 2018, section 3, https://arxiv.org/abs/1807.06521
    Weights are (batch, 1, 1, height · width), row after row.
    Cost: time O(C H W + k² H W), memory O(C H W).
    """

    axes: ClassVar[tuple[str, str, str]] = ("", "", "place")

    def __init__(self, channels: int, kernel: int = 7, normalise: Any = "sigmoid"):
        super().__init__(channels, normalise)
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"Spatial needs an odd kernel, as many places to each side, got {kernel}")
        self.f = nn.Conv2d(2, 1, kernel, padding=kernel // 2)

    def allowed(self, keep: Bool[Tensor, "batch height width"]) -> Bool[Tensor, "batch 1 1 places"]:
        """The mask of the kept positions."""
        return keep.flatten(1)[:, None, None]

    def score(self, values: Image, keep: Keep = None) -> Float[Tensor, "batch 1 1 places"]:
        pooled = torch.stack((values.mean(1), values.amax(1)), dim=1)
        return self.f(pooled).flatten(2)[:, :, None]

    def combine(self, values: Image, weights: Float[Tensor, "batch 1 1 places"]) -> Image:
        return values * torch.unflatten(weights[:, 0], -1, values.shape[2:])
