"""Pictures of different sizes in one tensor, and which parts of it are real."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class Images(NamedTuple):
    """Pictures one behind the other, each in the top left corner; `keep` is True where there is one."""

    data: Float[Tensor, "batch channels height width"]
    """From 0 to 1, and 0 where there is no picture."""
    keep: Bool[Tensor, "batch height width"]

    def to(self, device: torch.device | str) -> "Images":
        """The same on another device."""
        return Images(self.data.to(device, non_blocking=True), self.keep.to(device, non_blocking=True))

    def picked(self, rows: Sequence[int]) -> "Images":
        """These pictures, without the filling that none of them needs."""
        keep = self.keep[list(rows)]
        high, wide = (_extent(keep.any(0).any(side)) for side in (1, 0))
        return Images(self.data[list(rows), :, :high, :wide], keep[:, :high, :wide])


def collect(
    pictures: Sequence[Float[Tensor, "channels _height _width"]], multiple: int = 1, least: tuple[int, int] = (1, 1)
) -> Images:
    """Pictures as one tensor, whose height and width are rounded up to a multiple: of an encoder's stride, say.

    There is room for pictures of the `least` height and width, even if all are smaller.
    """
    if not pictures:
        raise ValueError("a batch needs at least one picture, got none")
    if multiple < 1:
        raise ValueError(f"height and width are rounded up to a multiple of 1 or more, got {multiple}")
    kinds = sorted({picture.shape[0] for picture in pictures})
    if len(kinds) > 1:
        raise ValueError(f"a batch needs pictures of equally many channels, got {' and '.join(map(str, kinds))}")
    most = [max(least[side], *(each.shape[side + 1] for each in pictures)) for side in (0, 1)]
    height, width = (-(-each // multiple) * multiple for each in most)
    if all(picture.shape[1:] == (height, width) for picture in pictures):
        return Images(torch.stack(list(pictures)).float(), torch.ones(len(pictures), height, width, dtype=torch.bool))
    data = torch.zeros(len(pictures), kinds[0], height, width)
    keep = torch.zeros(len(pictures), height, width, dtype=torch.bool)
    for row, picture in enumerate(pictures):
        _, high, wide = picture.shape
        data[row, :, :high, :wide] = picture
        keep[row, :high, :wide] = True
    return Images(data, keep)


def _extent(kept: Bool[Tensor, " places"]) -> int:
    """How far what is kept reaches, and at least one place."""
    return int(kept.nonzero().max()) + 1 if kept.any() else 1
