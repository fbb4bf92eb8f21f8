"""Codec of images, the source side of every task that reads them: their size and channels, and their mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from jaxtyping import UInt8
from torch import Tensor

from regard.config import ImageData
from regard.data.image.augment import Change
from regard.data.image.axis import image_axis
from regard.data.image.batch import Images, random_images
from regard.data.image.cache import ImageCache
from regard.data.image.loader import ImageLoader, collate_frames
from regard.data.image.reading import size
from regard.data.image.types import ImageExample
from regard.data.records import input_record, locate

MEASURED = 1000
"""Maximum number of images from which the mean of a channel is computed."""
LEAST = 1e-3
"""Minimum deviation, that of images of one colour."""
PREFETCH = 6
"""Batches that a training prefetches, each in a thread: augmenting thirty images takes longer than a training step."""
KINDS: dict[str, type] = {"height": int, "width": int, "channels": int, "stride": int, "mean": list, "deviation": list}
KINDS |= {"stretch": bool, "whole": int}
"""Fields that are saved, and their types."""
LATER = {"stretch": False, "whole": 0}
"""Fields that older files lack."""

if TYPE_CHECKING:
    from regard.data.axis import Image

Its = TypeVar("Its", bound="ImageCodec")


@dataclass(frozen=True, kw_only=True)
class ImageCodec:
    """Size and channels of images as a model reads them, and the mean and the deviation that it standardises them by.

    An image that is larger than `height` x `width` is made smaller, or with `stretch` every one is made as large, whatever
    its proportions are. `stride` is the side of the square that one position of the model's map stands for.
    """

    kind: ClassVar[str] = "pictures"
    reads_files: ClassVar[bool] = True

    height: int = 256
    width: int = 256
    channels: int = 3
    stride: int = 8
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    """Mean of each channel, which a model subtracts; it then divides by `deviation`."""
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)
    stretch: bool = False
    whole: int = 0
    """Number of vectors for the image as a whole, which come before the positions of the map."""

    def standardise(self: Its, cache: ImageCache) -> Its:
        """Codec with the mean and the deviation of the channels of these images, or of many of them."""
        chosen = range(0, len(cache), -(-len(cache) // MEASURED))
        total, count = torch.zeros(2, self.channels, dtype=torch.float64), 0
        for number in chosen:
            pixels = cache.picture(number).double().transpose(-3, 0).flatten(1)  # a clip's frames behind its channels
            total += torch.stack((pixels.sum(1), pixels.square().sum(1)))
            count += pixels.shape[1]
        mean, square = total / count
        deviation = (square - mean.square()).clamp_min(LEAST**2).sqrt()
        rounded = [tuple(round(value, 4) for value in values.tolist()) for values in (mean, deviation)]
        return replace(self, mean=rounded[0], deviation=rounded[1])

    def cache_images(self, examples: Sequence[ImageExample]) -> ImageCache:
        """Cache of the images of examples, as a model reads them."""
        return ImageCache(examples, (self.height, self.width), self.channels, stretched=self.stretch)

    def read(self, text: str, number: int = 1) -> Any:
        """Record of the path of an image."""
        return input_record(text, number)

    def length(self, example: ImageExample) -> int:
        """Number of pixels, of all frames of a clip."""
        [(frames, height, width)] = self.cache_images([example]).sizes
        return max(1, frames) * height * width

    def collate(self, examples: Sequence[ImageExample]) -> Images:
        """Images of examples, padded to one tensor; of clips all frames."""
        cache = self.cache_images(examples)
        return collate_frames([cache.picture(number) for number in range(len(examples))], self.stride, (1, 1))[0]

    def loader(self, examples: Sequence[ImageExample], budget: int) -> ImageLoader:
        """Batches of an evaluation, each of at most so many pixels."""
        return ImageLoader(self.cache_images(examples), budget, shuffle=False, multiple=self.stride)

    def train_loader(self, cache: ImageCache, budget: int, seed: int, change: Change | None) -> ImageLoader:
        """Batches of a training, whose images are augmented."""
        return ImageLoader(cache, budget, seed, multiple=self.stride, change=change, prefetch=PREFETCH)

    def budget(self, examples: Sequence[ImageExample], count: int) -> int:
        """Number of pixels of a batch of `count` images of the maximum size."""
        return count * self.height * self.width

    def read_image(self, example: ImageExample) -> UInt8[Tensor, "*frames channels height width"]:
        """Image as a model reads it."""
        return self.cache_images([example]).raw(0)

    def grid(self, example: ImageExample) -> tuple[int, int]:
        """Number of rows and columns of the map of an image."""
        [(_, height, width)] = self.cache_images([example]).sizes
        return -(-height // self.stride), -(-width // self.stride)

    def pieces(self, example: ImageExample) -> list[str]:
        """Label of each position of the map: row and column, from 1."""
        rows, columns = self.grid(example)
        return ["whole"] * self.whole + [f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns)]

    def axis(self, example: ImageExample) -> "Image":
        """Axis of an attention's keys: the positions of the map, over the image."""
        return image_axis(self.read_image(example), self.stride, self.whole)

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Images:
        """Random images, whose maps have these numbers of rows and columns, to trace a model for export."""
        return random_images(self.channels, [(length * self.stride,) * 2 for length in lengths], generator)

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions of a source that differ from batch to batch."""
        return {"data": {0: "sources", 2: "height", 3: "width"}, "keep": {0: "sources", 1: "height", 2: "width"}}

    def is_known(self, record: Any) -> bool:
        """True if there is an image; a file that is missing or is no image is an error that names it."""
        size(locate(record))
        return True

    def fits(self, record: Any) -> bool:
        """True if there is an image: one that is too large is resized."""
        return self.is_known(record)

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of all records: an image that is too large is resized."""
        return list(range(len(records)))

    def saved(self) -> dict[str, Any]:
        """Settings that are saved; tuples become lists in JSON."""
        return {name: getattr(self, name) for name in KINDS}


def usual(data: ImageData, stride: int, whole: int = 0) -> dict[str, Any]:
    """Settings of a codec as a config says, before any image has been measured."""
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
    """Fields of a saved codec; raises where one is missing or wrong."""
    kinds, settings = KINDS | kinds, LATER | settings
    if wrong := [name for name, kind in kinds.items() if type(settings.get(name)) is not kind]:
        raise ValueError(f"{wrong[0]} is missing or of the wrong kind")
    if min(settings[name] for name in ("height", "width", "stride")) < 1 or settings["channels"] not in (1, 3):
        raise ValueError("a picture needs a height, a width and a stride of 1 or more, and 1 channel or 3")
    standard = [*settings["mean"], *settings["deviation"]]
    if len(standard) != 2 * settings["channels"] or not all(type(value) is float and value >= 0 for value in standard):
        raise ValueError("mean and deviation need a number for each channel")
    return {name: tuple(settings[name]) if kind is list else settings[name] for name, kind in kinds.items()}
