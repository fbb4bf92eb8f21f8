"""Preprocessing of pictures: the part that codecs of all tasks that read them share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import UInt8
from torch import Tensor

from regard.config import ImageData
from regard.data.image.augment import Change
from regard.data.image.batch import Images, collate_images
from regard.data.image.cache import ImageCache
from regard.data.image.loader import ImageLoader
from regard.data.image.reading import place, size
from regard.data.image.types import ImageExample
from regard.data.records import Record

MEASURED = 1000
"""From how many pictures, at most, the mean of a channel is taken."""
LEAST = 1e-3
"""The least deviation: of pictures that are all of one colour."""
PREFETCH = 6
"""Batches that a training prefetches, each in a thread: augmenting thirty images takes longer than a training step."""
KINDS: dict[str, type] = {"height": int, "width": int, "channels": int, "stride": int, "mean": list, "deviation": list}
KINDS |= {"stretch": bool, "whole": int}
"""What is saved of it, and as what."""
LATER = {"stretch": False, "whole": 0}
"""What older files do not say."""

Its = TypeVar("Its", bound="ImageCodec")


@dataclass(frozen=True, kw_only=True)
class ImageCodec:
    """How large pictures are read, in which channels, and what a model takes off them.

    A picture that is larger than `height` x `width` is made smaller, or with `stretch` every one is made as large, whatever
    its proportions are. `stride` is the side of the square that one place of
    the model's map stands for.
    """

    kind: ClassVar[str] = "pictures"

    height: int = 256
    width: int = 256
    channels: int = 3
    stride: int = 8
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    """Of each channel, and its deviation: what a model takes off, and divides by."""
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)
    stretch: bool = False
    whole: int = 0
    """How many vectors for the whole picture come before the places of the map."""

    def standardise(self: Its, cache: ImageCache) -> Its:
        """The same, with the mean and the deviation of the channels of these pictures, or of many of them."""
        chosen = range(0, len(cache), -(-len(cache) // MEASURED))
        total, count = torch.zeros(2, self.channels, dtype=torch.float64), 0
        for number in chosen:
            pixels = cache.picture(number).double().transpose(-3, 0).flatten(1)  # a clip's frames behind its channels
            total += torch.stack((pixels.sum(1), pixels.square().sum(1)))
            count += pixels.shape[1]
        mean, square = total / count
        deviation = (square - mean.square()).clamp_min(LEAST**2).sqrt()
        rounded = [tuple(round(value, 4) for value in each.tolist()) for each in (mean, deviation)]
        return replace(self, mean=rounded[0], deviation=rounded[1])

    def cache_images(self, examples: Sequence[ImageExample]) -> ImageCache:
        """The pictures of examples, as a model reads them."""
        return ImageCache(examples, (self.height, self.width), self.channels, stretched=self.stretch)

    def alone(self, example: ImageExample) -> Images:
        """One picture, as a model reads it."""
        return collate_images([self.cache_images([example]).picture(0)], self.stride)

    def loader(self, examples: Sequence[ImageExample], budget: int) -> ImageLoader:
        """Batches to evaluate with, of at most so many pixels."""
        return ImageLoader(self.cache_images(examples), budget, shuffle=False, multiple=self.stride)

    def train_loader(self, cache: ImageCache, budget: int, seed: int, change: Change | None) -> ImageLoader:
        """Batches to train with, whose pictures change at random."""
        return ImageLoader(cache, budget, seed, multiple=self.stride, change=change, prefetch=PREFETCH)

    def budget(self, examples: Sequence[ImageExample], count: int) -> int:
        """The pixels of a batch of so many pictures as large as they may be."""
        return count * self.height * self.width

    def read_image(self, example: ImageExample) -> UInt8[Tensor, "*frames channels height width"]:
        """A picture as a model reads it."""
        return self.cache_images([example]).raw(0)

    def grid(self, example: ImageExample) -> tuple[int, int]:
        """The rows and columns of the map of a picture."""
        [(_, height, width)] = self.cache_images([example]).sizes
        return -(-height // self.stride), -(-width // self.stride)

    def pieces(self, example: ImageExample) -> list[str]:
        """What each place of the map is called: row and column, from 1."""
        rows, columns = self.grid(example)
        return ["whole"] * self.whole + [f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns)]

    def knows(self, record: Record) -> bool:
        """Whether there is a picture; a file that is missing, or is none, is an error that names it."""
        size(place(record))
        return True

    def reads(self, record: Record) -> bool:
        """The same: a picture that is too large is made smaller."""
        return self.knows(record)

    def short(self, records: Sequence[Record]) -> list[int]:
        """The places of all records: a picture that is too large is made smaller."""
        return list(range(len(records)))

    def saved(self) -> dict[str, Any]:
        """What is saved of it; tuples become lists in JSON."""
        return {name: getattr(self, name) for name in KINDS}


def usual(data: ImageData, stride: int, whole: int = 0) -> dict[str, Any]:
    """How pictures are read as a config says, before any has been measured."""
    middle = (0.5,) * data.channels
    sides = {"height": data.height, "width": data.width, "channels": data.channels}
    return {
        **sides,
        "stride": stride,
        "mean": middle,
        "deviation": middle,
        "stretch": getattr(data, "stretch", False),
        "whole": whole,
    }


def checked(settings: Any, kinds: dict[str, type]) -> dict[str, Any]:
    """What was saved of a codec, as its fields, once everything is seen to be there and to be right."""
    kinds, settings = KINDS | kinds, LATER | settings
    if wrong := [name for name, kind in kinds.items() if type(settings.get(name)) is not kind]:
        raise ValueError(f"{wrong[0]} is missing or of the wrong kind")
    if min(settings[name] for name in ("height", "width", "stride")) < 1 or settings["channels"] not in (1, 3):
        raise ValueError("a picture needs a height, a width and a stride of 1 or more, and 1 channel or 3")
    standard = [*settings["mean"], *settings["deviation"]]
    if len(standard) != 2 * settings["channels"] or not all(type(each) is float and each >= 0 for each in standard):
        raise ValueError("mean and deviation need a number for each channel")
    return {name: tuple(settings[name]) if kind is list else settings[name] for name, kind in kinds.items()}
