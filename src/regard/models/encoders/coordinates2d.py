"""Coordinates of feature-map positions in their picture, and their sinusoidal encoding."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.types import Encoded
from regard.data.image.batch import Images

SLOWEST, FASTEST = 0.25, 16.0
"""Lowest and highest frequency of the encoding, in periods per width of a picture."""


def measure_sizes(pictures: Images) -> Float[Tensor, "batch 2"]:
    """Width and height of each picture in pixels; always float32, since bfloat16 has no 257."""
    across, down = pictures.keep.any(1).sum(-1), pictures.keep.any(2).sum(-1)
    return torch.stack((across, down), dim=-1).clamp_min(1).float()


def compute_centres(pictures: Images, encoded: Encoded, stride: int) -> Float[Tensor, "batch places 2"]:
    """Centre of each position's window, x and y relative to its own picture: padding changes nothing.

    Always in float32: half precision has too few digits to tell pixels apart.
    """
    if encoded.grid is None:
        raise ValueError("a picture's places need a map with rows and columns, and this encoder gives no grid")
    rows, columns = encoded.grid
    down, across = (
        (torch.arange(count, device=encoded.data.device, dtype=torch.float32) + 0.5) * stride for count in (rows, columns)
    )
    pixels = torch.stack((across[None].expand(rows, columns), down[:, None].expand(rows, columns)), dim=-1).flatten(0, 1)
    return (pixels[None] / measure_sizes(pictures)[:, None]).clamp(0.0, 1.0)


def encode_coordinates(coordinates: Float[Tensor, "*rows numbers"], size: int) -> Float[Tensor, "*rows size"]:
    """Sinusoidal encoding of numbers from 0 to 1: equal parts of the vector for each, sines and cosines alternating.

        sin(2π f_i x), cos(2π f_i x),    f_i from 1/4 to 16 in equal ratios

    The product of two such vectors is Σ_i cos(2π f_i (x - y)): largest where x = y, and smaller the farther apart they are.
    As the positions of Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762, for coordinates, not indices.
    """
    numbers = coordinates.shape[-1]
    if size % (2 * numbers):
        raise ValueError(
            f"waves of {numbers} numbers need a size that is a multiple of {2 * numbers}, a sine and a cosine for each, "
            f"got {size}"
        )
    count = size // (2 * numbers)
    share = torch.arange(count, device=coordinates.device, dtype=torch.float32) / max(count - 1, 1)
    frequencies = 2 * math.pi * SLOWEST * (FASTEST / SLOWEST) ** share
    angles = coordinates.float()[..., None] * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-3).to(coordinates.dtype)
