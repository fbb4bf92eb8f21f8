"""GroupNorm and BatchNorm of feature maps with a padding mask: statistics are over the kept positions alone.

With `rectify` a residual connection and a ReLU follow the norm, max(0, norm(x) + residual), with zeros outside `keep`. On a
GPU with Triton all of it is one fused operation (kernels/triton/masked_norm).
"""

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.masked_pool import Image, Keep, compute_mean_factor, keeps_all, zero_padding
from regard.attention.normalise import widen

DEVICES: tuple[str, ...] = ("cuda",)
"""Devices that Triton compiles for. Tests add the CPU, on which its interpreter runs."""
PRECISIONS, WIDEST = (torch.bfloat16, torch.float16, torch.float32), 4096
"""Precisions of the fused kernel, and its most channels."""
MOST, LEAST = 32, 8
"""The most groups, as in the paper, and the fewest channels of a group where there are enough of them."""


class GroupNorm(nn.GroupNorm):
    """Group normalisation over the kept positions of each feature map.

        y = w (x - mean_g) / √(var_g + ε) + b,    with mean and variance over the channels of a group and the kept positions

    Wu and He 2018, https://arxiv.org/abs/1803.08494
    The output of a map depends neither on padding nor on the other maps of a batch, in training and evaluation. Without
    `groups` there are as many as divide the channels into groups of 8 or more, 32 at most.
    """

    def __init__(self, channels: int, groups: int | None = None):
        fitting = [count for count in range(1, MOST + 1) if channels % count == 0 and channels // count >= LEAST]
        super().__init__(groups or max(fitting, default=1), channels)

    def forward(self, image: Image, keep: Keep = None, *, rectify: bool = False, residual: Image | None = None) -> Image:
        if keep is not None and is_fused(image, self.weight):
            from regard.kernels.triton.masked_norm.operator import apply_norm

            return apply_norm(image, keep, self.weight, self.bias, self.num_groups, self.eps, rectify, residual).image
        return rectify_masked(self.normalise(image, keep), keep, residual) if rectify else self.normalise(image, keep)

    def normalise(self, image: Image, keep: Keep) -> Image:
        """The unfused norm; outside `keep` the output is undefined."""
        if keep is None or keeps_all(keep):  # then PyTorch's own norm will do
            return super().forward(image)
        groups = torch.unflatten(zero_padding(widen(image), keep), 1, (self.num_groups, -1))
        more, hidden = compute_mean_factor(keep, groups.dtype)[:, None, None, None, None], ~keep[:, None, None]
        centred = (groups - groups.mean((2, 3, 4), keepdim=True) * more).masked_fill(hidden, 0.0)
        spread = compute_mean_square(centred, (2, 3, 4)) * more
        weight, bias = (parameter.view(1, self.num_groups, -1, 1, 1) for parameter in (self.weight, self.bias))
        result = torch.addcmul(bias.to(groups.dtype), centred, torch.rsqrt(spread + self.eps) * weight)
        return result.flatten(1, 2).to(image.dtype)


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation over the kept positions of all maps of a batch; running statistics in evaluation.

        y = w (x - mean_c) / √(var_c + ε) + b

    Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167
    Unlike the paper, positions outside `keep` do not count.
    """

    def forward(self, image: Image, keep: Keep = None, *, rectify: bool = False, residual: Image | None = None) -> Image:
        if keep is not None and is_fused(image, self.weight) and self.training:
            from regard.kernels.triton.masked_norm.operator import apply_norm

            result = apply_norm(image, keep, self.weight, self.bias, None, self.eps, rectify, residual)
            self.update_statistics(result.mean[0], result.variance[0], result.total[0])
            return result.image
        return rectify_masked(self.normalise(image, keep), keep, residual) if rectify else self.normalise(image, keep)

    def normalise(self, image: Image, keep: Keep) -> Image:
        """The unfused norm; outside `keep` the output is undefined."""
        if not self.training or keep is None or keeps_all(keep):
            return super().forward(image)
        wide, count = zero_padding(widen(image), keep), keep.sum().clamp_min(1)
        more = keep.numel() / count.to(wide.dtype)
        centre = wide.mean((0, 2, 3), keepdim=True) * more
        centred = zero_padding(wide - centre, keep)
        spread = compute_mean_square(centred, (0, 2, 3)) * more
        self.update_statistics(centre.flatten(), spread.flatten(), count)
        weight, bias = (parameter[:, None, None].to(wide.dtype) for parameter in (self.weight, self.bias))
        return torch.addcmul(bias, centred, torch.rsqrt(spread + self.eps) * weight).to(image.dtype)

    @torch.no_grad()
    def update_statistics(self, centre: Tensor, spread: Tensor, count: Tensor) -> None:
        """Update the running statistics with those of a batch, as nn.BatchNorm2d does."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.running_mean.lerp_(centre.to(self.running_mean), self.momentum)
        self.running_var.lerp_((spread * count / (count - 1).clamp_min(1)).to(self.running_var), self.momentum)
        self.num_batches_tracked += 1


def build_norm(kind: str, channels: int) -> GroupNorm | BatchNorm:
    """The norm called "group" or "batch"."""
    if kind not in ("group", "batch"):
        raise ValueError(f"norm needs to be 'group' or 'batch', got {kind!r}")
    return GroupNorm(channels) if kind == "group" else BatchNorm(channels)


def is_fused(image: Image, weight: Tensor) -> bool:
    """True if the fused Triton kernel computes it: on a GPU that has Triton."""
    if image.device.type not in DEVICES or torch.compiler.is_compiling():
        return False
    from regard.kernels.runtime import capability

    fits = capability.INSTALLED and weight.dtype == torch.float32
    fits = fits and image.dtype in PRECISIONS and len(weight) <= WIDEST
    return fits and capability.find_obstacle(image.device, image.dtype) is None


def rectify_masked(image: Image, keep: Keep, residual: Image | None = None) -> Image:
    """ReLU of a residual sum: max(0, image + residual) at the kept positions, and 0 elsewhere."""
    return zero_padding(torch.relu(image if residual is None else image + residual), keep)


def compute_mean_square(data: Float[Tensor, "..."], axes: tuple[int, ...]) -> Float[Tensor, "..."]:
    """The mean of the squares along these axes, which saves no squares for the backward."""
    count = prod(data.shape[axis] for axis in axes)
    return torch.linalg.vector_norm(data, dim=axes, keepdim=True).square() / count
