"""Subsampling of frames: convolutions with stride 2, and pairs of vectors side by side."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.audio.batch import Frames

Mask = Bool[Tensor, "batch time"]


def halve_mask(keep: Mask) -> Bool[Tensor, "batch half"]:
    """Padding mask of every second position: kept where either of two is."""
    return keep[:, ::2]


def join_pairs(data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch half double"]:
    """Each two neighbouring vectors side by side; zeros after the last of an odd number."""
    batch, time, size = data.shape
    return F.pad(data, (0, 0, 0, time % 2)).reshape(batch, -1, 2 * size)


def count_halvings(subsampling: int) -> int:
    """Number of halvings of a subsampling; raises unless it is a power of 2."""
    halvings = subsampling.bit_length() - 1
    if subsampling < 1 or subsampling != 2**halvings:
        raise ValueError(f"model.subsampling needs to be a power of 2, such as 4, got {subsampling}")
    return halvings


class ConvolutionalSubsampling(nn.Module):
    """Convolutions over time and channels, each of which halves both, and a projection of what is left of the channels.

        x' = W vec(relu(conv(... relu(conv(x)))))

    Dong, Xu and Xu 2018, https://doi.org/10.1109/ICASSP.2018.8462506. A recording looks the same alone and in a batch:
    padding is set to zero before each convolution.
    """

    def __init__(self, channels: int, size: int, subsampling: int = 4, dropout: float = 0.0):
        super().__init__()
        halvings, maps = count_halvings(subsampling), max(8, size // 4)
        self.channels = channels
        self.convolutions = nn.ModuleList(
            nn.Conv2d(maps if number else 1, maps, 3, stride=2, padding=1) for number in range(halvings)
        )
        bins = channels
        for _ in range(halvings):
            bins = -(-bins // 2)
        self.project = nn.Linear(bins * (maps if halvings else 1), size)
        self.drop = nn.Dropout(dropout)

    def forward(self, source: Frames) -> tuple[Float[Tensor, "batch positions size"], Bool[Tensor, "batch positions"]]:
        """Vectors, and the mask of those that are no padding."""
        data, keep = check_frames(source, self.channels)
        maps = data[:, None]
        for convolution in self.convolutions:
            maps = convolution(maps).relu()
            keep = halve_mask(keep)
            maps = maps.masked_fill(~keep[:, None, :, None], 0.0)
        return self.drop(self.project(maps.transpose(1, 2).flatten(2))), keep


def check_frames(source: Frames, channels: int) -> tuple[Float[Tensor, "batch time channels"], Mask]:
    """Frames with zeros at padding, and their mask; raises where the number of channels differs."""
    data, keep = source
    if data.dim() != 3 or data.shape[2] != channels or not data.shape[1]:
        raise ValueError(
            f"this encoder was built for features of (batch, time, {channels}) with at least one frame, got "
            f"{tuple(data.shape)}; compute features with as many channels (data.bins, data.coefficients)"
        )
    return data.masked_fill(~keep[..., None], 0.0), keep


def average(data: Float[Tensor, "batch time size"], keep: Mask) -> Float[Tensor, "batch 1 size"]:
    """Mean of the vectors that are no padding."""
    total = torch.where(keep[..., None], data, 0.0).sum(1, keepdim=True)
    return total / keep.sum(1).clamp_min(1)[:, None, None]
