"""Batches of pictures with all of their questions, so that each picture is encoded once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from regard.data.batch import Padded, pad
from regard.data.image.loader import ImageLoader
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.loader import Part
from regard.data.special_tokens import PAD

MOST = 64
"""Most questions of a picture in one batch; a picture with more is repeated."""


class Group(NamedTuple):
    """Examples about one picture, their indices among all, and the location of the first."""

    examples: tuple[ImageExample, ...]
    numbers: tuple[int, ...]
    where: str | None


class SharedPictureLoader:
    """The batches of a loader of groups, each of whose pictures has several rows of questions and labels.

    The picture encoder, which is most of the work, runs once for all questions. Batches remain a pure function of
    seed and step.
    """

    def __init__(self, loader: ImageLoader):
        self.loader = loader

    def batch(self, step: int) -> ImageBatch:
        """The batch of one step, counted from 0 over all epochs."""
        return _ungroup(self.loader.batch(step))

    def in_order(self) -> Iterator[Part]:
        """Every question once, with its index: for evaluation."""
        for _, grouped in self.loader.in_order():
            yield Part([number for group in grouped.records for number in group.numbers], _ungroup(grouped))

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """Number of batches of an epoch."""
        return self.loader.steps_per_epoch(epoch)

    def close(self) -> None:
        """Stop the prefetching threads."""
        self.loader.close()


def group_by_picture(examples: Sequence[ImageExample], first: Sequence[int], most: int = MOST) -> list[ImageExample]:
    """An example for each picture, with a Group for its record; `first` is, of each, the first that has the same one."""
    groups: dict[int, list[int]] = {}
    for number, same in enumerate(first):
        groups.setdefault(same, []).append(number)
    parts = [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]
    return [_group(examples, tuple(part)) for part in parts]


def _group(examples: Sequence[ImageExample], numbers: tuple[int, ...]) -> ImageExample:
    examples = tuple(examples[number] for number in numbers)
    return ImageExample(examples[0].picture, record=Group(examples, numbers, getattr(examples[0].record, "where", None)))


def _ungroup(grouped: ImageBatch) -> ImageBatch:
    """A batch of groups as one of questions."""
    rows = [(row, example) for row, group in enumerate(grouped.records) for example in group.examples]
    return grouped._replace(
        records=tuple(example.record for _, example in rows),
        labels=_padded([example.labels for _, example in rows]),
        question=_padded([example.question for _, example in rows]),
        about=torch.tensor([row for row, _ in rows]),
    )


def _padded(sequences: Sequence[list[int] | None]) -> Padded | None:
    present = [sequence for sequence in sequences if sequence is not None]
    return pad(present, PAD) if len(present) == len(sequences) else None
