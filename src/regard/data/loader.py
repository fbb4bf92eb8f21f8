"""Loader: which examples make up which batch, as a pure function of the seed and the number of the step.

No state is kept: a run that stops at step n goes on with batch(n + 1), whatever happened in between.

Examples are put in order of length, roughly: by the level of their longer side and, within it, of their shorter one; inside
a level the order is drawn anew for each epoch. That order is cut into batches by a budget of tokens, and the batches are
shuffled. Levels are a few percent of a length wide, so padding stays low. Since the levels in that order are the same in
every epoch, so are the cuts: every epoch has equally many batches, and any step is found at once.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import Batch, Padded
from regard.data.bucketing import round_lengths
from regard.data.special_tokens import PAD
from regard.data.text.codec import Example

Numbers = NDArray[np.int64]


class Part(NamedTuple):
    """A batch, and which examples are in it: what puts answers back into their order."""

    indices: list[int]
    batch: Batch


class Loader:
    """Batches of at most `batch_tokens` tokens on their longer side, padding included; a longer example goes alone."""

    def __init__(self, examples: Sequence[Example], batch_tokens: int = 4096, seed: int = 0, shuffle: bool = True):
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
        self.seed = seed
        self.shuffle = shuffle
        self._source = Sequences([example.source for example in examples])
        self._target = Sequences([example.target or [] for example in examples]) if paired else None
        shorter, longer = self._lengths()
        self._levels = round_lengths(longer, 16) * (1 << 32) + round_lengths(shorter, 4)
        self._sorted = np.lexsort((shorter, longer))
        self._exact = _cuts(longer[self._sorted], batch_tokens)
        self._cuts = _cuts(_tops(longer, self._levels >> 32), batch_tokens) if shuffle else self._exact
        self._epoch = lru_cache(maxsize=4)(self._draw)

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of one pass, as indices into the examples: each example once."""
        return [each.tolist() for each in self._epoch(number)]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches one pass has: the same number for each."""
        return len(self._cuts) - 1

    def batch(self, step: int) -> Batch:
        """The batch of one step, counted from 0 over all epochs."""
        if step < 0:
            raise ValueError(f"steps are counted from 0, got {step}")
        epoch, place = divmod(step, self.steps_per_epoch())
        return self._collect(self._epoch(epoch)[place])

    def in_order(self) -> Iterator[Part]:
        """Every example once, the shortest first, with the indices to put answers back: for evaluation."""
        for first, last in pairwise(self._exact):
            indices = self._sorted[first:last]
            yield Part(indices.tolist(), self._collect(indices))

    def padding(self, epoch: int = 0) -> float:
        """The share of the numbers in an epoch's batches that is filling."""
        sides = [side for side in (self._source, self._target) if side is not None]
        spent = sum(len(each) * int(side.lengths[each].max()) for each in self._epoch(epoch) for side in sides)
        return 1 - sum(int(side.lengths.sum()) for side in sides) / max(1, spent)

    def _draw(self, number: int) -> list[Numbers]:
        if not self.shuffle:
            return [self._sorted[first:last] for first, last in pairwise(self._cuts)]
        if number < 0:
            raise ValueError(f"epochs are counted from 0, got {number}")
        chance = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, number])))
        drawn = chance.permutation(len(self.examples))
        order = drawn[np.argsort(self._levels[drawn], kind="stable")]
        return [order[self._cuts[place] : self._cuts[place + 1]] for place in chance.permutation(len(self._cuts) - 1)]

    def _collect(self, indices: Numbers) -> Batch:
        target = None if self._target is None else self._target.pad(indices)
        return Batch(self._source.pad(indices), target, tuple(self.examples[index].record for index in indices))

    def _lengths(self) -> tuple[Numbers, Numbers]:
        """The shorter and the longer side of each example."""
        other = self._source.lengths if self._target is None else self._target.lengths
        return np.minimum(self._source.lengths, other), np.maximum(self._source.lengths, other)


class Sequences:
    """Sequences end to end in one array, from which a batch is taken at once."""

    def __init__(self, sequences: Sequence[Sequence[int]]):
        self.lengths: Numbers = np.fromiter((len(each) for each in sequences), np.int64, len(sequences))
        self.starts: Numbers = np.cumsum(self.lengths) - self.lengths
        total = int(self.lengths.sum())
        self.data: Numbers = np.fromiter(chain.from_iterable(sequences), np.int64, total)

    def pad(self, indices: Numbers) -> Padded:
        """These sequences, a row each."""
        lengths = self.lengths[indices]
        places = np.arange(int(lengths.max()))
        keep = places < lengths[:, None]
        data = np.full(keep.shape, PAD, np.int64)
        data[keep] = self.data[(self.starts[indices][:, None] + places)[keep]]
        return Padded(torch.from_numpy(data), torch.from_numpy(keep))


def _tops(lengths: Numbers, level: Numbers) -> Numbers:
    """In order of level, for each example the longest that its level has."""
    order = np.argsort(level, kind="stable")
    _, first, place = np.unique(level[order], return_index=True, return_inverse=True)
    return np.maximum.reduceat(lengths[order], first)[place]


def _cuts(lengths: Numbers, budget: int) -> list[int]:
    """Where batches begin and end, among ascending lengths: as many at a time as the budget holds, and at least one."""
    cuts = [0]
    for place, length in enumerate(lengths.tolist()):
        if place > cuts[-1] and (place - cuts[-1] + 1) * length > budget:
            cuts.append(place)
    return [*cuts, len(lengths)]
