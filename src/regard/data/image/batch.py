"""Images of different sizes padded to one tensor, with the mask of what is not padding."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.data.bucketing import round_length

STEPS = 8
"""Steps in which heights and widths double for CUDA graphs."""


class Images(NamedTuple):
    """Padded images, each in the top left corner; `keep` is True where there is one."""

    data: Float[Tensor, "batch channels height width"]
    """From 0 to 1, and 0 at padding."""
    keep: Bool[Tensor, "batch height width"]

    def to(self, device: torch.device | str) -> "Images":
        """Copy on another device."""
        return Images(self.data.to(device, non_blocking=True), self.keep.to(device, non_blocking=True))

    @property
    def lengths(self) -> None:
        """None: the size of an image says nothing of the length of a text about it."""
        return None

    def select_rows(self, rows: Sequence[int]) -> "Images":
        """Batch of these images, without the padding that none of them needs."""
        keep = self.keep[list(rows)]
        height, width = (_find_extent(keep.any(0).any(side)) for side in (1, 0))
        return Images(self.data[list(rows), :, :height, :width], keep[:, :height, :width])

    def round_shape(self) -> "Images":
        """The images with more padding, up to a rounded height and width."""
        height, width = self.keep.shape[1:]
        padding = (0, round_length(width, STEPS) - width, 0, round_length(height, STEPS) - height)
        if not any(padding):
            return self
        return Images(functional.pad(self.data, padding), functional.pad(self.keep, padding, value=False))


def collate_images(
    images: Sequence[Float[Tensor, "channels _height _width"]], multiple: int = 1, least: tuple[int, int] = (1, 1)
) -> Images:
    """Pad images to one tensor, whose height and width are multiples of `multiple`, such as the stride of an encoder.

    It is at least as large as the `least` height and width, even if all images are smaller.
    """
    if not images:
        raise ValueError("a batch needs at least one picture, got none")
    if multiple < 1:
        raise ValueError(f"height and width are rounded up to a multiple of 1 or more, got {multiple}")
    channels = sorted({image.shape[0] for image in images})
    if len(channels) > 1:
        raise ValueError(f"a batch needs pictures of equally many channels, got {' and '.join(map(str, channels))}")
    sides = [max(least[side], *(image.shape[side + 1] for image in images)) for side in (0, 1)]
    height, width = (-(-side // multiple) * multiple for side in sides)
    if all(image.shape[1:] == (height, width) for image in images):
        return Images(torch.stack(list(images)).float(), torch.ones(len(images), height, width, dtype=torch.bool))
    data = torch.zeros(len(images), channels[0], height, width)
    keep = torch.zeros(len(images), height, width, dtype=torch.bool)
    for row, image in enumerate(images):
        data[row, :, : image.shape[1], : image.shape[2]] = image
        keep[row, : image.shape[1], : image.shape[2]] = True
    return Images(data, keep)


def random_images(channels: int, sides: Sequence[tuple[int, int]], generator: torch.Generator) -> Images:
    """Random images of these heights and widths."""
    return collate_images([torch.rand(channels, height, width, generator=generator) for height, width in sides])


def _find_extent(keep: Bool[Tensor, " positions"]) -> int:
    """Last kept position, counted from 1; 1 where nothing is kept."""
    return int(keep.nonzero().max()) + 1 if keep.any() else 1
