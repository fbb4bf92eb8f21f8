"""Loaders: which examples make up which batch, as a pure function of the seed and the number of the step.

No state is kept: a run that stops at step n goes on with batch(n + 1), whatever happened in between.

Examples are bucketed: sorted by a coarse level of their size, so that those of one batch have similar sizes and little of
it is padding. Within a level the order is shuffled anew for each epoch. The sorted order is cut into batches by a budget,
and the batches are shuffled. Since the levels in that order are the same in every epoch, so are the cuts: every epoch has
equally many batches, and the batch of any step is found at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import Batch, Padded
from regard.data.bucketing import round_lengths
from regard.data.modality import Codec, Example, SequenceExample
from regard.data.prefetch import Prefetcher, bind_weakly
from regard.data.special_tokens import NO_TOKEN, PAD

Numbers = NDArray[np.int64]


class Part(NamedTuple):
    """A batch and the indices of its examples, by which answers are put back in order."""

    indices: list[int]
    batch: Any


class Buckets(NamedTuple):
    """Levels of the examples and the cuts of their sorted order, for training and for evaluation."""

    levels: Numbers
    """Level of each example; shuffled epochs take the levels in ascending order."""
    cuts: list[int]
    """Positions in the sorted order at which batches begin and end."""
    ordered: Numbers
    """Indices of the examples in the order of an evaluation."""
    ordered_cuts: list[int]


class Loader(ABC):
    """Batches of a bucketed data set, in an order that is shuffled for each epoch or is that of an evaluation.

    A subclass says how examples are bucketed and how those of a batch are collated. `prefetch` batches are computed before
    they are needed, in as many threads, which end with the loader.
    """

    def __init__(self, buckets: Buckets, seed: int, shuffle: bool, prefetch: int = 0):
        self.seed, self.shuffle, self.prefetch = seed, shuffle, prefetch
        self._buckets = buckets
        self._cuts = buckets.cuts if shuffle else buckets.ordered_cuts
        self._epoch = lru_cache(maxsize=4)(bind_weakly(self._order_epoch))
        self._prefetcher = Prefetcher(bind_weakly(self._collate_step), prefetch)

    @abstractmethod
    def collate(self, indices: Sequence[int], step: int | None = None) -> Any:
        """Batch of the examples with these indices; augmentation depends on the `step`, and an evaluation has none."""

    def epoch(self, number: int) -> list[list[int]]:
        """Batches of one epoch, as indices into the examples: each example once."""
        return [indices.tolist() for indices in self._epoch(number)]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """Number of batches of one epoch: the same for each."""
        return len(self._cuts) - 1

    def batch(self, step: int) -> Any:
        """Batch of one step, counted from 0 over all epochs."""
        if step < 0:
            raise ValueError(f"steps are counted from 0, got {step}")
        return self._prefetcher(step)

    def in_order(self) -> Iterator[Part]:
        """Every example once, sorted by size and without augmentation, with the indices that put answers back in order."""
        cuts = pairwise(self._buckets.ordered_cuts)
        parts = [self._buckets.ordered[first:last].tolist() for first, last in cuts]
        prefetcher = Prefetcher(lambda number: self.collate(parts[number]), self.prefetch, len(parts))
        try:
            for number, indices in enumerate(parts):
                yield Part(indices, prefetcher(number))
        finally:
            prefetcher.close()

    def close(self) -> None:
        """End the threads that prefetch."""
        self._prefetcher.close()

    def _order_epoch(self, number: int) -> list[Numbers]:
        if number < 0:
            raise ValueError(f"epochs are counted from 0, got {number}")
        levels, _, ordered, _ = self._buckets
        if not self.shuffle:
            return [ordered[first:last] for first, last in pairwise(self._cuts)]
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, number])))
        shuffled = generator.permutation(len(levels))
        order = shuffled[np.argsort(levels[shuffled], kind="stable")]
        return [order[self._cuts[place] : self._cuts[place + 1]] for place in generator.permutation(len(self._cuts) - 1)]

    def _collate_step(self, step: int) -> Any:
        epoch, place = divmod(step, self.steps_per_epoch())
        return self.collate(self._epoch(epoch)[place].tolist(), step)


class SequenceLoader(Loader):
    """Batches of at most `batch_tokens` tokens on their longer side, padding included; a longer example goes alone.

    Examples are bucketed by the level of their longer side and, within it, of their shorter one; levels are a few percent of
    a length wide.
    """

    def __init__(self, examples: Sequence[SequenceExample], batch_tokens: int = 4096, seed: int = 0, shuffle: bool = True):
        if not examples:
            raise ValueError("a loader needs at least one example, got none; were all dropped as too long?")
        if batch_tokens < 1 or seed < 0:
            raise ValueError(
                f"a loader needs batch_tokens of at least 1 and a seed of at least 0, got {batch_tokens} and {seed}"
            )
        paired = sum(example.target is not None for example in examples)
        if paired not in (0, len(examples)):
            raise ValueError(f"a loader needs a target for every example or for none, got {paired} for {len(examples)}")
        self.examples = examples
        self._source = Sequences([example.source for example in examples])
        self._target = Sequences([example.target or [] for example in examples]) if paired else None
        copies = [getattr(example, "copies", None) for example in examples]
        self._copies = None if copies[0] is None else Sequences([tokens or [] for tokens in copies])
        super().__init__(self._bucket(batch_tokens, shuffle), seed, shuffle)

    def collate(self, indices: Sequence[int], step: int | None = None) -> Batch:
        """Sources and targets of the examples with these indices, each padded to one tensor."""
        numbers = np.asarray(indices, np.int64)
        target = None if self._target is None else self._target.pad(numbers)
        source = self._source.pad(numbers)
        if self._copies is not None:
            source = source._replace(copies=self._copies.pad(numbers, NO_TOKEN).data)
        return Batch(source, target, tuple(self.examples[index].record for index in indices))

    def padding(self, epoch: int = 0) -> float:
        """Share of an epoch's batches that is padding."""
        sides = [side for side in (self._source, self._target) if side is not None]
        size = sum(len(batch) * int(side.lengths[batch].max()) for batch in self._epoch(epoch) for side in sides)
        return 1 - sum(int(side.lengths.sum()) for side in sides) / max(1, size)

    def _bucket(self, batch_tokens: int, shuffle: bool) -> Buckets:
        other = self._source.lengths if self._target is None else self._target.lengths
        shorter, longer = np.minimum(self._source.lengths, other), np.maximum(self._source.lengths, other)
        levels = round_lengths(longer, 16) * (1 << 32) + round_lengths(shorter, 4)
        ordered = np.lexsort((shorter, longer))
        exact = cut_by_budget(longer[ordered], batch_tokens)
        cuts = cut_by_budget(longest_of_levels(longer, levels >> 32), batch_tokens) if shuffle else exact
        return Buckets(levels, cuts, ordered, exact)


class ModalityLoader(Loader):
    """Batches of examples of any modality, which its codec collates: each of at most `budget` of what `codec.length` counts.

    Padding is included, and a longer example goes alone. Modalities that need no other loader have this one.
    """

    def __init__(
        self, codec: Codec, examples: Sequence[Example], budget: int, seed: int = 0, shuffle: bool = True, prefetch: int = 0
    ):
        if not examples:
            raise ValueError("a loader needs at least one example, got none; were all dropped as too long?")
        if budget < 1 or seed < 0:
            raise ValueError(f"a loader needs a budget of at least 1 and a seed of at least 0, got {budget} and {seed}")
        self.codec, self.examples = codec, examples
        lengths: Numbers = np.array([codec.length(example) for example in examples], np.int64)
        levels, ordered = round_lengths(lengths, 16), np.argsort(lengths, kind="stable")
        exact = cut_by_budget(lengths[ordered], budget)
        cuts = cut_by_budget(longest_of_levels(lengths, levels), budget) if shuffle else exact
        super().__init__(Buckets(levels, cuts, ordered, exact), seed, shuffle, prefetch)

    def collate(self, indices: Sequence[int], step: int | None = None) -> Batch:
        """Sources and targets of the examples with these indices."""
        examples = [self.examples[index] for index in indices]
        records = tuple(example.record for example in examples)
        return Batch(self.codec.collate(examples), self.codec.collate_target(examples), records)


class Sequences:
    """Sequences of token ids end to end in one array, from which a batch is taken at once."""

    def __init__(self, sequences: Sequence[Sequence[int]]):
        self.lengths: Numbers = np.fromiter((len(sequence) for sequence in sequences), np.int64, len(sequences))
        self.starts: Numbers = np.cumsum(self.lengths) - self.lengths
        total = int(self.lengths.sum())
        self.data: Numbers = np.fromiter(chain.from_iterable(sequences), np.int64, total)

    def pad(self, indices: Numbers, filling: int = PAD) -> Padded:
        """Pad sequences into rows."""
        lengths = self.lengths[indices]
        positions = np.arange(int(lengths.max()))
        keep = positions < lengths[:, None]
        data = np.full(keep.shape, filling, np.int64)
        data[keep] = self.data[(self.starts[indices][:, None] + positions)[keep]]
        return Padded(torch.from_numpy(data), torch.from_numpy(keep))


def longest_of_levels(lengths: Numbers, levels: Numbers) -> Numbers:
    """Length of the longest example of each example's level, in the order of the levels."""
    order = np.argsort(levels, kind="stable")
    _, first, rank = np.unique(levels[order], return_index=True, return_inverse=True)
    return np.maximum.reduceat(lengths[order], first)[rank]


def cut_by_budget(lengths: Numbers, budget: int) -> list[int]:
    """Positions among ascending lengths at which batches begin and end: as many as the budget holds, and at least one."""
    cuts = [0]
    for place, length in enumerate(lengths.tolist()):
        if place > cuts[-1] and (place - cuts[-1] + 1) * length > budget:
            cuts.append(place)
    return [*cuts, len(lengths)]
