"""Selective kernels: attention over receptive fields for each channel."""

from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.masked_norm import GroupNorm
from regard.attention.masked_pool import Keep, compute_masked_mean, zero_padding
from regard.attention.visual import Gating, Image, reduce_channels

Branches = Float[Tensor, "batch channels branches height width"]


class SelectiveKernel(Gating):
    """Selective kernel unit: a softmax for each channel over branches of different receptive fields.

        u_m = max(0, norm(conv_m x)),    m = 1 .. M, of receptive field 2 m + 1
        z = max(0, norm(W mean(Σ_m u_m))),    s_cm = A_cm z,    a_c = softmax_m(s_cm),    y_c = Σ_m a_cm u_mc

    Li et al. 2019, section 3.1, https://arxiv.org/abs/1903.06586
    The branches are 3 x 3 convolutions, dilated by 1, 2, ... z has channels / `reduction` numbers, but at least `least`;
    `groups` are those of the convolutions. Unlike the paper, a map is normalised by itself (GroupNorm with one group,
    nn.LayerNorm) and not with the others of its batch, which therefore do not influence it.
    Weights are (batch, channels, 1, branches): one head for each channel.
    Cost: time O(M C² H W / groups + C z), memory O(M C H W).
    """

    axes: ClassVar[tuple[str, str, str]] = ("channel", "", "branch")

    def __init__(
        self,
        channels: int,
        branches: int = 2,
        reduction: int = 16,
        least: int = 32,
        groups: int = 1,
        normalise: Any = "softmax",
    ):
        super().__init__(channels, normalise)
        if branches < 1:
            raise ValueError(f"SelectiveKernel needs 1 branch or more, got {branches}")
        inner = max(reduce_channels("SelectiveKernel", channels, reduction), least)
        self.branches = nn.ModuleList(DilatedBranch(channels, number + 1, groups) for number in range(branches))
        self.fuse = nn.Sequential(nn.Linear(channels, inner, False), nn.LayerNorm(inner), nn.ReLU())
        self.A = nn.Linear(inner, channels * branches, False)

    def split(self, image: Image, keep: Keep = None) -> Branches:
        """The output of each branch."""
        masks = () if keep is None else (keep,)
        return torch.stack([branch(image, *masks) for branch in self.branches], dim=2)

    def score(self, values: Branches, keep: Keep = None) -> Float[Tensor, "batch channels 1 branches"]:
        z = self.fuse(compute_masked_mean(values.sum(2), keep))
        return torch.unflatten(self.A(z), -1, (self.channels, 1, len(self.branches)))

    def combine(self, values: Branches, weights: Float[Tensor, "batch channels 1 branches"]) -> Image:
        return torch.unflatten((weights @ values.flatten(3))[:, :, 0], -1, values.shape[3:])


class DilatedBranch(nn.Sequential):
    """Branch with a dilated 3 x 3 convolution, whose receptive field is 2 dilation + 1."""

    def __init__(self, channels: int, dilation: int, groups: int):
        convolution = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation, groups=groups, bias=False)
        super().__init__(convolution, GroupNorm(channels, 1), nn.ReLU())

    def forward(self, image: Image, keep: Keep = None) -> Image:
        convolution, norm, bend = self
        return zero_padding(bend(norm(convolution(image), keep)), keep)
