"""Loader of images: batches of similar sizes, augmented as a pure function of the seed and the number of the step."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.batch import pad_present
from regard.data.image.augment import BatchChange, Change
from regard.data.image.batch import Images, collate_images
from regard.data.image.bucketing import bucket_images
from regard.data.image.cache import ImageCache
from regard.data.image.types import ImageBatch
from regard.data.loader import Buckets, Loader

OPTIONAL = ("target", "labels", "boxes", "question")


class ImageLoader(Loader):
    """Batches of at most `batch_pixels` pixels, padding included; a larger image goes alone.

    Heights and widths are rounded up to a `multiple`, and are the same for most batches of images of similar sizes. `change`
    augments the images of `batch`, and not those of `in_order`; where it makes images larger, so are the batches.
    """

    def __init__(
        self,
        cache: ImageCache,
        batch_pixels: int = 1 << 18,
        seed: int = 0,
        shuffle: bool = True,
        *,
        multiple: int = 1,
        change: Change | None = None,
        prefetch: int = 2,
    ):
        _check(cache)
        if batch_pixels < 1 or seed < 0 or multiple < 1:
            raise ValueError(
                "a loader needs batch_pixels and a multiple of at least 1 and a seed of at least 0, "
                f"got {batch_pixels}, {multiple} and {seed}"
            )
        self.cache, self.multiple, self.change = cache, multiple, change
        levels, cuts, self._room = bucket_images(np.array(cache.sizes, np.int64), batch_pixels, multiple)
        super().__init__(Buckets(levels, cuts, np.argsort(levels, kind="stable"), cuts), seed, shuffle, prefetch)

    def collate(self, indices: Sequence[int], step: int | None = None) -> ImageBatch:
        """Images and targets of the examples with these indices; images are augmented where a training step needs them."""
        if self.change is None or step is None:
            return self._collate([self._view(index) for index in indices], indices)
        if self._are_uniform(indices):
            return self._collate(self._augment_together(indices, step), indices)
        generators = (self._seed_generator(step, row) for row in range(len(indices)))
        views = [self._view(index, generator) for index, generator in zip(indices, generators, strict=True)]
        return self._collate(views, indices)

    def padding(self, epoch: int = 0) -> float:
        """Share of the pixels of an epoch's batches that is padding."""
        sizes = np.maximum(np.array(self.cache.sizes, np.int64), 1)
        pixels = sum(len(batch) * int(self._room[batch].max(0).prod()) for batch in self._epoch(epoch))
        return 1 - int(sizes.prod(1).sum()) / pixels

    def _seed_generator(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=key)))

    def _collate(self, views: Sequence["_View"], indices: Sequence[int]) -> ImageBatch:
        examples = [self.cache.examples[index] for index in indices]
        _, height, width = self._room[list(indices)].max(0).tolist()
        source, frames = collate_frames([view.picture for view in views], self.multiple, (height, width))
        return ImageBatch(
            source=source,
            target=pad_present([example.target for example in examples]),
            records=tuple(example.record for example in examples),
            labels=pad_present([view.labels for view in views]),
            boxes=_stack_boxes([view.boxes for view in views]),
            question=pad_present([example.question for example in examples]),
            frames=frames,
        )

    def _are_uniform(self, indices: Sequence[int]) -> bool:
        """Return True if these can be augmented as one tensor: images of one size without boxes."""
        sizes = {self.cache.sizes[index] for index in indices}
        boxed = any(self.cache.examples[index].boxes is not None for index in indices)
        return (
            isinstance(self.change, BatchChange)
            and len(sizes) == 1
            and not boxed
            and not any(frames for frames, *_ in sizes)
        )

    def _augment_together(self, indices: Sequence[int], step: int) -> "list[_View]":
        assert isinstance(self.change, BatchChange), "uniform images are augmented together"
        images = torch.stack([self.cache.raw(index) for index in indices]).float() / 255
        augmented = self.change.together(images, self._seed_generator(step))
        return [
            _View(image, self.cache.examples[index].labels, None) for image, index in zip(augmented, indices, strict=True)
        ]

    def _view(self, index: int, generator: np.random.Generator | None = None) -> "_View":
        example, image = self.cache.examples[index], self.cache.picture(index)
        if self.change is None or generator is None:
            return _View(image, example.labels, example.boxes)
        augmented, boxes, kept_boxes = self.change(image, generator, example.boxes)
        labels = example.labels
        if kept_boxes is not None and labels is not None:
            labels = [label for label, keep in zip(labels, kept_boxes.tolist(), strict=True) if keep]
        return _View(augmented, labels, boxes)


class _View(NamedTuple):
    """Parts of an example that augmentation changes."""

    picture: Float[Tensor, "*frames channels height width"]
    labels: list[int] | None
    boxes: Float[Tensor, "boxes 4"] | None


def _check(cache: ImageCache) -> None:
    examples = cache.examples
    if not examples:
        raise ValueError("a loader needs at least one example, got none")
    for name in OPTIONAL:
        count = sum(getattr(example, name) is not None for example in examples)
        if count not in (0, len(examples)):
            raise ValueError(f"a loader needs {name} for every example or for none, got {count} for {len(examples)}")
    for number, example in enumerate(examples):
        boxes, labels = example.boxes, example.labels or []
        if boxes is not None and len(boxes) != len(labels):
            raise ValueError(f"boxes need a label each, got {len(boxes)} and {len(labels)} in example {number}")
    clips = sum(frames > 0 for frames, _, _ in cache.sizes)
    if clips not in (0, len(examples)):
        raise ValueError(f"a loader needs pictures or clips, got {len(examples) - clips} and {clips}")


def collate_frames(
    images: Sequence[Float[Tensor, "*_frames channels _height _width"]], multiple: int, least: tuple[int, int]
) -> tuple[Images, Bool[Tensor, "batch most"] | None]:
    """Images in one tensor; of clips all frames, and the mask of those that there are."""
    if images[0].dim() == 3:
        return collate_images(images, multiple, least), None
    lengths = torch.tensor([len(clip) for clip in images])
    keep_frames = torch.arange(int(lengths.max())) < lengths[:, None]
    frames = collate_images([frame for clip in images for frame in clip], multiple, least)
    if keep_frames.all():
        return frames, keep_frames
    data = frames.data.new_zeros(keep_frames.numel(), *frames.data.shape[1:])
    keep = frames.keep.new_zeros(keep_frames.numel(), *frames.keep.shape[1:])
    data[keep_frames.flatten()], keep[keep_frames.flatten()] = frames
    return Images(data, keep), keep_frames


def _stack_boxes(boxes: Sequence[Float[Tensor, "_boxes 4"] | None]) -> Float[Tensor, "batch most 4"] | None:
    present = [rows for rows in boxes if rows is not None]
    if not present:
        return None
    stacked = torch.zeros(len(present), max(len(rows) for rows in present), 4)
    for row, example_boxes in enumerate(present):
        stacked[row, : len(example_boxes)] = example_boxes
    return stacked
