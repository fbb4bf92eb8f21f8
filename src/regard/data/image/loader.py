"""Loader of pictures: which examples make up which batch, as a pure function of the seed and the number of the step.

No state is kept: a run that stops at step n goes on with batch(n + 1), whatever happened in between, random changes of the
pictures included. The order of an epoch is drawn as that of texts is (regard.data.loader), with sizes for lengths.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import Padded, pad
from regard.data.image.augment import Change, Together
from regard.data.image.batch import Images, collate_images
from regard.data.image.bucketing import order
from regard.data.image.cache import ImageCache
from regard.data.image.types import ImageBatch, Part
from regard.data.prefetch_ahead import Window
from regard.data.special_tokens import PAD
from regard.data.weak_method import weakly

OPTIONAL = ("target", "labels", "boxes", "question")


class Loader:
    """Batches of at most `batch_pixels` pixels, filling included; a larger picture goes alone.

    Heights and widths are rounded up to a `multiple`, and are the same for most batches of pictures of like sizes. `change`
    is what happens at random to the pictures of `batch`, and not to those of `in_order`; where it makes pictures larger, so
    are the batches. `ahead` batches are made before they are asked for, in as many threads, which end with the loader.
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
        ahead: int = 2,
    ):
        _check(cache)
        if batch_pixels < 1 or seed < 0 or multiple < 1:
            raise ValueError(
                "a loader needs batch_pixels and a multiple of at least 1 and a seed of at least 0, "
                f"got {batch_pixels}, {multiple} and {seed}"
            )
        self.cache, self.seed, self.shuffle, self.multiple, self.change = cache, seed, shuffle, multiple, change
        self.ahead = ahead
        self._level, self._cuts, self._room = order(np.array(cache.sizes, np.int64), batch_pixels, multiple)
        self._epoch = lru_cache(maxsize=4)(weakly(self._draw))
        self._window = Window(weakly(self._make), ahead)

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of one pass, as indices into the examples: each example once."""
        return [each.tolist() for each in self._epoch(number)]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches one pass has: the same number for each."""
        return len(self._cuts) - 1

    def batch(self, step: int) -> ImageBatch:
        """The batch of one step, counted from 0 over all epochs."""
        if step < 0:
            raise ValueError(f"steps are counted from 0, got {step}")
        return self._window(step)

    def in_order(self) -> Iterator[Part]:
        """Every example once, by size and as it is, with the indices to put answers back: for evaluation."""
        taken = np.argsort(self._level, kind="stable")
        parts = [taken[first:last].tolist() for first, last in pairwise(self._cuts)]
        window = Window(
            lambda place: self._collect(parts[place], [self._see(index) for index in parts[place]]), self.ahead, len(parts)
        )
        try:
            for place, indices in enumerate(parts):
                yield Part(indices, window(place))
        finally:
            window.close()

    def padding(self, epoch: int = 0) -> float:
        """The share of the pixels in an epoch's batches that is filling."""
        sizes = np.maximum(np.array(self.cache.sizes, np.int64), 1)
        spent = sum(len(each) * int(self._room[each].max(0).prod()) for each in self._epoch(epoch))
        return 1 - int(sizes.prod(1).sum()) / spent

    def close(self) -> None:
        """End the threads that make batches ahead; what was asked for has come."""
        self._window.close()

    def _draw(self, number: int) -> list[NDArray[np.int64]]:
        if number < 0:
            raise ValueError(f"epochs are counted from 0, got {number}")
        if not self.shuffle:
            taken = np.argsort(self._level, kind="stable")
            return [taken[first:last] for first, last in pairwise(self._cuts)]
        chance = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, number])))
        drawn = chance.permutation(len(self.cache))
        taken = drawn[np.argsort(self._level[drawn], kind="stable")]
        return [taken[self._cuts[place] : self._cuts[place + 1]] for place in chance.permutation(len(self._cuts) - 1)]

    def _make(self, step: int) -> ImageBatch:
        epoch, place = divmod(step, self.steps_per_epoch())
        indices = self._epoch(epoch)[place].tolist()
        if self.change is None:
            return self._collect(indices, [self._see(index) for index in indices])
        if self._alike(indices):
            return self._collect(indices, self._together(indices, step))
        chances = (self._chance(step, row) for row in range(len(indices)))
        return self._collect(indices, [self._see(index, chance) for index, chance in zip(indices, chances, strict=True)])

    def _chance(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=key)))

    def _collect(self, indices: Sequence[int], seen: Sequence["_Seen"]) -> ImageBatch:
        examples = [self.cache.examples[index] for index in indices]
        _, high, wide = self._room[list(indices)].max(0).tolist()
        source, frames = _rows([each.picture for each in seen], self.multiple, (high, wide))
        return ImageBatch(
            source=source,
            target=_padded([each.target for each in examples]),
            records=tuple(each.record for each in examples),
            labels=_padded([each.labels for each in seen]),
            boxes=_stacked([each.boxes for each in seen]),
            question=_padded([each.question for each in examples]),
            frames=frames,
        )

    def _alike(self, indices: Sequence[int]) -> bool:
        """Whether these can be changed all at once: pictures of one size, without boxes that would have to follow."""
        sizes = {self.cache.sizes[index] for index in indices}
        boxed = any(self.cache.examples[index].boxes is not None for index in indices)
        return (
            isinstance(self.change, Together) and len(sizes) == 1 and not boxed and not any(frames for frames, *_ in sizes)
        )

    def _together(self, indices: Sequence[int], step: int) -> "list[_Seen]":
        assert isinstance(self.change, Together), "asked for where it is"
        pictures = torch.stack([self.cache.raw(index) for index in indices]).float() / 255
        changed = self.change.together(pictures, self._chance(step))
        return [
            _Seen(picture, self.cache.examples[index].labels, None) for picture, index in zip(changed, indices, strict=True)
        ]

    def _see(self, index: int, chance: np.random.Generator | None = None) -> "_Seen":
        example, picture = self.cache.examples[index], self.cache.picture(index)
        if self.change is None or chance is None:
            return _Seen(picture, example.labels, example.boxes)
        changed, boxes, stayed = self.change(picture, chance, example.boxes)
        labels = example.labels
        if stayed is not None and labels is not None:
            labels = [label for label, stays in zip(labels, stayed.tolist(), strict=True) if stays]
        return _Seen(changed, labels, boxes)


class _Seen(NamedTuple):
    """What of an example may change."""

    picture: Float[Tensor, "*frames channels height width"]
    labels: list[int] | None
    boxes: Float[Tensor, "boxes 4"] | None


def _check(cache: ImageCache) -> None:
    examples = cache.examples
    if not examples:
        raise ValueError("a loader needs at least one example, got none")
    for name in OPTIONAL:
        given = sum(getattr(example, name) is not None for example in examples)
        if given not in (0, len(examples)):
            raise ValueError(f"a loader needs {name} for every example or for none, got {given} for {len(examples)}")
    for number, example in enumerate(examples):
        boxes, labels = example.boxes, example.labels or []
        if boxes is not None and len(boxes) != len(labels):
            raise ValueError(f"boxes need a label each, got {len(boxes)} and {len(labels)} in example {number}")
    clips = sum(frames > 0 for frames, _, _ in cache.sizes)
    if clips not in (0, len(examples)):
        raise ValueError(f"a loader needs pictures or clips, got {len(examples) - clips} and {clips}")


def _rows(
    pictures: Sequence[Float[Tensor, "*_frames channels _height _width"]], multiple: int, least: tuple[int, int]
) -> tuple[Images, Bool[Tensor, "batch most"] | None]:
    """Pictures as they are; of clips all frames, and which of them there are."""
    if pictures[0].dim() == 3:
        return collate_images(pictures, multiple, least), None
    lengths = torch.tensor([len(clip) for clip in pictures])
    there = torch.arange(int(lengths.max())) < lengths[:, None]
    packed = collate_images([frame for clip in pictures for frame in clip], multiple, least)
    if there.all():
        return packed, there
    data = packed.data.new_zeros(there.numel(), *packed.data.shape[1:])
    keep = packed.keep.new_zeros(there.numel(), *packed.keep.shape[1:])
    data[there.flatten()], keep[there.flatten()] = packed
    return Images(data, keep), there


def _padded(sequences: Sequence[list[int] | None]) -> Padded | None:
    """Rows of numbers, where there are any; each example has some or none has."""
    there = [each for each in sequences if each is not None]
    return pad(there, PAD) if there else None


def _stacked(boxes: Sequence[Float[Tensor, "_boxes 4"] | None]) -> Float[Tensor, "batch most 4"] | None:
    there = [each for each in boxes if each is not None]
    if not there:
        return None
    stacked = torch.zeros(len(there), max(len(each) for each in there), 4)
    for row, each in enumerate(there):
        stacked[row, : len(each)] = each
    return stacked
