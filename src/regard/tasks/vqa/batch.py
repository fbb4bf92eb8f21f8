"""Batches whose pictures come with all of their questions, so that a picture is encoded once for all of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from regard.data.batch import Padded, pad
from regard.data.image.loader import ImageLoader
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.loader import Part
from regard.data.special_tokens import PAD

MOST = 64
"""The most questions of a picture in one batch; one with more comes several times."""


class Group(NamedTuple):
    """Examples that ask about one picture, their numbers among all, and the place of the first of them."""

    asked: tuple[ImageExample, ...]
    numbers: tuple[int, ...]
    where: str | None


class Shared:
    """The batches of a loader of groups, each of whose pictures has several rows of questions and labels.

    What is learned of a picture from one question serves the others, and the encoder of pictures, which is most of the work,
    runs once. Batches stay a pure function of seed and step.
    """

    def __init__(self, loader: ImageLoader):
        self.loader = loader

    def batch(self, step: int) -> ImageBatch:
        """The batch of one step, counted from 0 over all epochs."""
        return _asked(self.loader.batch(step))

    def in_order(self) -> Iterator[Part]:
        """Every question once, with the indices to put answers back: for evaluation."""
        for _, found in self.loader.in_order():
            yield Part([number for group in found.records for number in group.numbers], _asked(found))

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches one pass has."""
        return self.loader.steps_per_epoch(epoch)

    def close(self) -> None:
        """End the threads that make batches ahead."""
        self.loader.close()


def grouped(examples: Sequence[ImageExample], first: Sequence[int], most: int = MOST) -> list[ImageExample]:
    """An example for each picture, with a Group for its record; `first` is, of each, the first that has the same one."""
    groups: dict[int, list[int]] = {}
    for number, same in enumerate(first):
        groups.setdefault(same, []).append(number)
    parts = [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]
    return [_group(examples, tuple(part)) for part in parts]


def _group(examples: Sequence[ImageExample], numbers: tuple[int, ...]) -> ImageExample:
    asked = tuple(examples[number] for number in numbers)
    return ImageExample(asked[0].picture, record=Group(asked, numbers, getattr(asked[0].record, "where", None)))


def _asked(found: ImageBatch) -> ImageBatch:
    """A batch of groups as one of questions."""
    rows = [(row, each) for row, group in enumerate(found.records) for each in group.asked]
    return found._replace(
        records=tuple(each.record for _, each in rows),
        labels=_padded([each.labels for _, each in rows]),
        question=_padded([each.question for _, each in rows]),
        about=torch.tensor([row for row, _ in rows]),
    )


def _padded(sequences: Sequence[list[int] | None]) -> Padded | None:
    there = [each for each in sequences if each is not None]
    return pad(there, PAD) if len(there) == len(sequences) else None
