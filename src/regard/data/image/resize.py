"""Resize a picture into a box, keeping its proportions."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional

Box = tuple[int, int]
"""The most height and width."""

TOGETHER = 1 << 20
"""Numbers that are resized at once; of a larger picture each channel by itself, so that one alone lies there as floats."""


def fitted(height: int, width: int, box: Box, *, upscale: bool = False) -> tuple[int, int]:
    """The largest height and width within the box that have the proportions of those given; never larger, unless asked."""
    if min(height, width) < 1 or min(box) < 1:
        raise ValueError(f"a picture and its box need a height and a width of 1 or more, got {(height, width)} and {box}")
    ratio = min(box[0] / height, box[1] / width)
    if ratio >= 1 and not upscale:
        return height, width
    return min(box[0], max(1, round(height * ratio))), min(box[1], max(1, round(width * ratio)))


def stretch(
    picture: Shaped[Tensor, "*frames channels height width"], box: Box
) -> Float[Tensor, "*frames channels tall wide"]:
    """The picture as high and wide as the box, whatever its proportions are; each pixel as in `fit`."""
    return _sized(picture, box)


def fit(
    picture: Shaped[Tensor, "*frames channels height width"], box: Box, *, upscale: bool = False
) -> Float[Tensor, "*frames channels fitted_height fitted_width"]:
    """The picture at that size: each pixel an average over those that it stands for (bilinear, antialiased).

    Bytes from 0 to 255 become floats from 0 to 1.
    """
    height, width = picture.shape[-2:]
    return _sized(picture, fitted(height, width, box, upscale=upscale))


def _sized(picture: Tensor, size: Box) -> Tensor:
    *frames, channels, height, width = picture.shape
    if size == (height, width):
        return _floats(picture)
    flat = picture.reshape(-1, channels, height, width)
    parts = [flat] if flat.numel() <= TOGETHER else [plane[None, None] for plane in flat.flatten(0, 1)]
    resized = [
        functional.interpolate(_floats(part), size, mode="bilinear", antialias=True, align_corners=False) for part in parts
    ]
    return torch.clamp(torch.cat(resized, dim=0 if len(parts) == 1 else 1), 0, 1).view(*frames, channels, *size)


def _floats(picture: Tensor) -> Tensor:
    return picture.float() / 255 if picture.dtype == torch.uint8 else picture
