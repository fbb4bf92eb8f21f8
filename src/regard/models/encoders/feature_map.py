"""Feature maps with their padding masks: input, downsampling and output of the picture encoders.

Padding changes nothing: every convolution reads zeros outside a picture, as it does at the border of a batch, and every mean
is one over the kept positions. A position is kept where its stride x stride window has any pixel of the picture.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.masked_pool import Image, compute_masked_mean, zero_padding
from regard.attention.types import Encoded
from regard.data.image.batch import Images

Mask = Bool[Tensor, "batch height width"]
FeatureMap = Float[Tensor, "batch found rows columns"]
"""Feature map with other channels and at most as many positions."""
SmallerMask = Bool[Tensor, "batch rows columns"]
"""Padding mask of such a map."""


def mask_pictures(pictures: Images, channels: int) -> tuple[Image, Mask]:
    """First feature map of pictures, zero outside each; raises where the number of channels differs."""
    data, keep = pictures
    if data.shape[1] != channels or 0 in data.shape[2:]:
        raise ValueError(
            f"this encoder was made for pictures of (batch, {channels}, height, width) with at least one pixel, got "
            f"{tuple(data.shape)}; read them with {channels} channel{'s' * (channels > 1)}, or build it for others"
        )
    return zero_padding(data, keep), keep


def to_channels_last(image: Image) -> Image:
    """Convert to channels-last memory, which convolutions in half precision want on a GPU."""
    half = image.dtype in (torch.bfloat16, torch.float16)
    return image.contiguous(memory_format=torch.channels_last) if half and image.is_cuda else image


def downsample_mask(keep: Mask, stride: int = 2) -> SmallerMask:
    """Padding mask after downsampling by `stride`."""
    return F.max_pool2d(keep[:, None].float(), stride, ceil_mode=True)[:, 0] > 0


def average_pool(image: Image, keep: Mask) -> FeatureMap:
    """Average pooling of 2 x 2 positions, over those that are kept."""
    height, width = image.shape[2:]
    sides = (0, width % 2, 0, height % 2)
    total = F.avg_pool2d(F.pad(zero_padding(image, keep), sides), 2)
    return total / F.avg_pool2d(F.pad(keep[:, None].to(image.dtype), sides), 2).clamp_min(0.25)


def upsample(image: Image, height: int, width: int) -> Float[Tensor, "batch channels tall wide"]:
    """Nearest-neighbour upsampling by 2, cropped to a size: undoes the shape of `halve`."""
    return image.repeat_interleave(2, 2).repeat_interleave(2, 3)[:, :, :height, :width]


def flatten_map(image: Image, keep: Mask, final: Float[Tensor, "batch size"] | None = None) -> Encoded:
    """Flatten a map row by row into an encoded source; `final` is the mean over kept positions unless given."""
    final = compute_masked_mean(image, keep) if final is None else final
    data = zero_padding(image, keep).flatten(2).mT
    return Encoded(data, keep.flatten(1), (final[:, None],), grid=(image.shape[2], image.shape[3]))


def build_convolution(before: int, after: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Build a convolution that keeps the size, or divides it by its stride and rounds up, for ReLU layers.

    Initialised as in He et al. 2015, https://arxiv.org/abs/1502.01852, which keeps the variance through the layers.
    """
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    return convolution
