"""Batches of stories: word ids of their sentences and of the questions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Padded, map_tensors
from regard.data.bucketing import round_length
from regard.data.loader import Buckets, Loader, Numbers, Sequences
from regard.data.special_tokens import PAD
from regard.tasks.answer.records import StoryQuestion

LEAST = 16
"""Sentences up to which all stories are in one bucket, so that batches of a joint training mix short tasks."""
MOST = 1 << 15
"""Most sentences of a batch of an evaluation or a training, padding included, unless one story has more."""
UNKNOWN = -100
"""Label of an answer that is no class: it has no loss, and no prediction is right."""


class StoryExample(NamedTuple):
    """Encoded question: word ids of the sentences and of the question, the number of the answer, and the facts."""

    story: tuple[tuple[int, ...], ...]
    question: tuple[int, ...]
    label: int | None
    facts: tuple[int, ...]
    record: StoryQuestion
    cut: int = 0
    """Sentences at the beginning that were left out, which `facts` does not count."""


class Stories(NamedTuple):
    """Stories and their questions; a word id of PAD is padding, and `keep` is True where there is a sentence."""

    data: Int[Tensor, "batch sentences words"]
    question: Int[Tensor, "batch question_words"]
    keep: Bool[Tensor, "batch sentences"]

    @property
    def lengths(self) -> None:
        """Lengths of targets; None: an answer is one class."""
        return None

    def to(self, device: torch.device | str) -> "Stories":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    def select_rows(self, rows: Sequence[int]) -> "Stories":
        """These rows, without the sentences and words that are padding in all of them."""
        data, question, keep = (tensor[list(rows)] for tensor in self)
        length = max(1, int(keep.sum(1).max()))
        width = max(1, int((data != PAD).any(0).any(0).sum()))
        return Stories(
            data[:, :length, :width], question[:, : max(1, int((question != PAD).any(0).sum()))], keep[:, :length]
        )

    def round_shape(self) -> "Stories":
        """The rows with more padding: sentences up to a power of two, words up to a multiple of four."""
        length, width = self.data.shape[1:]
        more, wider = round_sentences(length) - length, round_length(width, 8) - width
        longer = round_length(self.question.shape[1], 8) - self.question.shape[1]
        return Stories(
            F.pad(self.data, (0, wider, 0, more), value=PAD),
            F.pad(self.question, (0, longer), value=PAD),
            F.pad(self.keep, (0, more), value=False),
        )


class StoryBatch(NamedTuple):
    """Stories with their answers, and with what only a loss or a metric reads: the supporting facts."""

    source: Stories
    target: Padded | None
    facts: Bool[Tensor, "batch sentences"]
    linear: Bool[Tensor, " batch"]
    """True in the batches of a linear start, whose hops have no softmax."""
    records: tuple[StoryQuestion, ...] = ()

    def to(self, device: torch.device | str) -> "StoryBatch":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    @property
    def rows(self) -> int:
        """Number of questions."""
        return len(self.source.data)

    def select_rows(self, rows: Sequence[int]) -> "StoryBatch":
        """Batch of these questions."""
        source = self.source.select_rows(rows)
        target = None if self.target is None else self.target.select_rows(rows)
        facts = self.facts[list(rows), : source.keep.shape[1]]
        return StoryBatch(
            source, target, facts, self.linear[list(rows)], tuple(self.records[row] for row in rows if self.records)
        )

    def round_shape(self) -> "StoryBatch":
        """The batch with more padding, so that few shapes occur."""
        source = self.source.round_shape()
        facts = F.pad(self.facts, (0, source.keep.shape[1] - self.facts.shape[1]), value=False)
        return self._replace(source=source, facts=facts)

    def unpack(self) -> "StoryBatch":
        """The batch itself: rows are never packed."""
        return self


def round_sentences(length: int) -> int:
    """Sentences of a padded story: a power of two, and at least LEAST; a level of the buckets."""
    return max(LEAST, 1 << (max(length, 1) - 1).bit_length())


class StoryLoader(Loader):
    """Batches of `size` questions; stories of up to 16 sentences, and those up to each power of two, have a bucket each.

    Sentences are in one table, each once, from which a batch is taken at once. Batches of the first `linear_start` steps are
    marked for a linear start.
    """

    def __init__(
        self,
        examples: Sequence[StoryExample],
        size: int,
        seed: int = 0,
        shuffle: bool = True,
        linear_start: int = 0,
    ):
        if not examples:
            raise ValueError("a loader needs at least one question, got none")
        self.examples, self.linear_start = examples, linear_start
        numbers = dict[tuple[int, ...], int]()
        stories = [[numbers.setdefault(sentence, len(numbers)) for sentence in example.story] for example in examples]
        self._sentences = Sequences(list(numbers))
        self._stories = Sequences(stories)
        self._questions = Sequences([example.question for example in examples])
        self._facts = Sequences([example.facts for example in examples])
        self._labels = np.array([UNKNOWN if example.label is None else example.label for example in examples], np.int64)
        self._table = self._sentences.pad(np.arange(len(numbers))).data.numpy()
        super().__init__(bucket_stories(self._stories.lengths, size), seed, shuffle)

    def collate(self, indices: Sequence[int], step: int | None = None) -> StoryBatch:
        """Batch of the questions with these indices."""
        rows = np.asarray(indices, np.int64)
        story = self._stories.pad(rows)
        data = self._table[story.data.numpy()]
        data[~story.keep.numpy()] = PAD
        width = max(1, int(self._sentences.lengths[story.data.numpy()[story.keep.numpy()]].max()))
        facts = np.zeros(story.keep.shape, bool)
        counts = self._facts.lengths[rows]
        if counts.sum():
            padded = self._facts.pad(rows)
            facts[np.repeat(np.arange(len(rows)), counts), padded.data.numpy()[padded.keep.numpy()]] = True
        labels = torch.from_numpy(self._labels[rows])[:, None]
        records = tuple(self.examples[index].record for index in indices)
        return StoryBatch(
            Stories(torch.from_numpy(data[:, :, :width]).contiguous(), self._questions.pad(rows).data, story.keep),
            Padded(labels, torch.ones_like(labels, dtype=torch.bool)),
            torch.from_numpy(facts),
            torch.full((len(rows),), step is not None and step < self.linear_start),
            records,
        )


def bucket_stories(lengths: Numbers, size: int) -> Buckets:
    """Buckets of stories by the power of two of their length, each cut into batches of `size` or, of long stories, fewer."""
    levels = np.array([round_sentences(length) for length in lengths.tolist()], np.int64)
    ordered = np.argsort(lengths, kind="stable")
    return Buckets(levels, cut_levels(np.sort(levels), size), ordered, cut_levels(np.sort(levels), size))


def cut_levels(levels: Numbers, size: int) -> list[int]:
    """Places at which batches of ascending levels begin and end: a batch holds one level."""
    cuts = [0]
    for place in range(1, len(levels)):
        most = max(1, min(size, MOST // int(levels[cuts[-1]])))
        if place - cuts[-1] == most or levels[place] != levels[cuts[-1]]:
            cuts.append(place)
    return [*cuts, len(levels)]


def iterate_sentences(examples: Sequence[StoryExample]) -> Iterator[tuple[int, ...]]:
    """Word ids of every sentence and question."""
    for example in examples:
        yield from example.story
        yield example.question
