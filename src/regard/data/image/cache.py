"""Pictures by number, each decoded once while there is room to keep it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from regard.data.image.reading import CAP, SHOWN, read_pixels, size
from regard.data.image.resize import Box, fit, fitted, stretch
from regard.data.image.types import ImageExample, Picture
from regard.errors import DataError

GREY = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a grey (ITU-R BT.601), as in Pillow."""

THREADS = 8

Size = TypeVar("Size", bound=tuple[int, ...])


class ImageCache:
    """The pictures of examples, as bytes. Whether one is kept or made again changes no bit of it.

    A file that several examples share, such as one that several questions are about, is one picture, and so is what draws
    the same. A picture larger than `box` is made smaller, or with `stretched` every one as large as that; `room` is the
    most bytes that are kept of what was decoded or drawn.
    """

    def __init__(
        self,
        examples: Sequence[ImageExample],
        box: Box | None = None,
        channels: int = 3,
        *,
        stretched: bool = False,
        cap: int = CAP,
        room: int = 1 << 30,
    ):
        if channels not in (1, 3):
            raise ValueError(f"an image cache has pictures of 1 channel or 3, got {channels}")
        self.examples, self.box, self.channels, self.cap = examples, box, channels, cap
        self.stretched = stretched and box is not None
        self._room = room
        self._cached: dict[int, Tensor] = {}
        self._lock = Lock()
        self.first = shared(examples)
        """For each example the first that has the same picture."""
        own = sorted(set(self.first))
        with ThreadPoolExecutor(THREADS, thread_name_prefix="regard-sizes") as pool:
            measured = dict(zip(own, readable(list(pool.map(self._measured, own))), strict=True))
        self.sizes: list[tuple[int, int, int]] = [measured[number] for number in self.first]
        """Frames, height and width of each; 0 frames for what is no clip."""

    def __len__(self) -> int:
        return len(self.examples)

    def raw(self, number: int) -> UInt8[Tensor, "*frames channels height width"]:
        """Picture from 0 to 255."""
        number = self.first[number]
        cached = self._cached.get(number)
        if cached is not None:
            return cached
        picture = self._decode(number)
        if picture is not self.examples[number].picture:
            self._keep(number, picture)
        return picture

    def picture(self, number: int) -> Float[Tensor, "*frames channels height width"]:
        """One picture, from 0 to 1."""
        return self.raw(number).float() / 255

    def _keep(self, number: int, picture: Tensor) -> None:
        with self._lock:
            if number not in self._cached and picture.numel() <= self._room:
                self._room -= picture.numel()
                self._cached[number] = picture

    def _decode(self, number: int) -> UInt8[Tensor, "*frames channels height width"]:
        source = self.examples[number].picture
        if isinstance(source, (str, Path)):
            picture: Tensor = read_pixels(source, self._where(number), channels=self.channels, cap=self.cap)
        else:
            picture = _checked(source if isinstance(source, Tensor) else source(), number)
        picture = _coloured(picture, self.channels)
        height, width = picture.shape[-2:]
        if self.box is not None and self._fitted(height, width) != (height, width):
            picture = (stretch if self.stretched else fit)(picture, self.box)
        return picture if picture.dtype == torch.uint8 else (picture.clamp(0, 1) * 255).round().byte()

    def _measured(self, number: int) -> tuple[int, int, int] | DataError:
        """The size of one, or why it has none."""
        try:
            return self._size(number)
        except DataError as error:
            return error

    def _size(self, number: int) -> tuple[int, int, int]:
        """A file's size is in its header; what is drawn is drawn, and kept if there is room."""
        source = self.examples[number].picture
        if isinstance(source, (str, Path)):
            height, width = size(source, self._where(number), cap=self.cap)
            return 0, *self._fitted(height, width)
        picture = _checked(source, number) if isinstance(source, Tensor) else self.raw(number)
        height, width = picture.shape[-2:]
        frames = picture.shape[0] if picture.dim() == 4 else 0
        return frames, *self._fitted(height, width)

    def _fitted(self, height: int, width: int) -> tuple[int, int]:
        """Size to which a picture of this size is read."""
        if self.box is None:
            return height, width
        return self.box if self.stretched else fitted(height, width, self.box)

    def _where(self, number: int) -> str | None:
        return getattr(self.examples[number].record, "where", None)


def readable(sizes: Sequence[Size | DataError]) -> list[Size]:
    """The sizes; an error that lists the first of those that have none."""
    if wrong := [entry for entry in sizes if isinstance(entry, DataError)]:
        listed = "; ".join(str(entry) for entry in wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN:,} more" * (len(wrong) > SHOWN)
        many = f"{len(wrong):,} of {len(sizes):,} pictures cannot be read: " * (len(wrong) > 1)
        raise DataError(f"{many}{listed}{more}") from wrong[0]
    return [entry for entry in sizes if not isinstance(entry, DataError)]


def shared(examples: Sequence[ImageExample]) -> list[int]:
    """For each example the first that has the same picture; a tensor, and what draws something else, is its own."""
    first: dict[Any, int] = {}
    firsts = []
    for number, example in enumerate(examples):
        picture = example.picture
        same = picture if isinstance(picture, (str, Path)) else getattr(picture, "same", None)
        firsts.append(number if same is None else first.setdefault(same, number))
    return firsts


def _checked(picture: Tensor, number: int) -> Picture:
    """A picture that somebody hands over: of the right kind and shape, and not empty."""
    right = picture.dim() in (3, 4) and picture.shape[-3] in (1, 3) and picture.numel() > 0
    if not right or not (picture.dtype == torch.uint8 or picture.is_floating_point()):
        raise ValueError(
            "a picture needs to be a tensor of bytes or floats, ([frames,] 1 or 3 channels, height, width), "
            f"got {picture.dtype} {tuple(picture.shape)} in example {number}"
        )
    return picture


def _coloured(picture: Picture, channels: int) -> Shaped[Tensor, "*frames wanted height width"]:
    if picture.shape[-3] == channels:
        return picture
    if channels == 3:
        return picture.expand(*picture.shape[:-3], 3, -1, -1)
    weights = torch.tensor(GREY)[:, None, None]
    return (_floats(picture) * weights).sum(-3, keepdim=True)


def _floats(picture: Picture) -> Float[Tensor, "*frames channels height width"]:
    return picture.float() / 255 if picture.dtype == torch.uint8 else picture.float()
