"""Packed: several examples in each row of a batch, one after the other, so that little of it is padding.

As with Loader no state is kept: a batch is a pure function of the seed and the number of its step. Which examples share a
row is decided once, from their lengths; the rows are shuffled anew for each epoch and cut into batches of one shape.

Krell et al. 2021, https://arxiv.org/abs/2107.02027. Unlike the paper, which packs one sequence by a histogram of its
lengths, rows have two sides, and both have to fit: an example goes to the open row in which it leaves least room.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import Batch, Padded
from regard.data.loader import Numbers, Sequences
from regard.data.modality import SequenceExample
from regard.data.special_tokens import PAD

OPEN = 256
"""Rows that are filled at the same time; when there are more, the fullest is closed."""


class Packed:
    """Batches of batch_tokens // places rows, and at least one, of `places` tokens for sources and as many for targets.

    The last batch of an epoch is filled up with empty rows, so that all of them have one shape.
    """

    def __init__(self, examples: Sequence[SequenceExample], places: int, batch_tokens: int = 4096, seed: int = 0):
        if not examples:
            raise ValueError("packed rows need at least one example, got none; were all dropped as too long?")
        if places < 1 or batch_tokens < 1 or seed < 0:
            raise ValueError(
                "packed rows need at least 1 place, batch_tokens of at least 1 and a seed of at least 0, got "
                f"{places}, {batch_tokens} and {seed}"
            )
        if lone := sum(example.target is None for example in examples):
            raise ValueError(f"packed rows need a target for every example, and {lone} of {len(examples)} have none")
        self.examples, self.places, self.seed = examples, places, seed
        self.rows = max(1, batch_tokens // places)
        """Number of rows in a batch."""
        self._source = Sequences([example.source for example in examples])
        self._target = Sequences([example.target or [] for example in examples])
        lengths = np.stack((self._source.lengths, self._target.lengths), axis=1)
        if (longest := int(lengths.max())) > places:
            raise ValueError(
                f"rows of {places} places do not hold the longest example, which has {longest} tokens; set "
                f"train.packing_length={longest} or more, or data.max_source_length and data.max_target_length to {places} "
                "or less"
            )
        self._filled = fill(lengths, places, _chance(seed))
        self._epoch = lru_cache(maxsize=4)(self._draw)

    def epoch(self, number: int) -> list[list[list[int]]]:
        """The batches of one pass, the rows of each, and in them indices into the examples: each example once."""
        return [[self._filled[row].tolist() for row in rows] for rows in self._epoch(number)]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """Number of batches in an epoch, the same for each."""
        return -(-len(self._filled) // self.rows)

    def batch(self, step: int) -> Batch:
        """The batch of one step, counted from 0 over all epochs."""
        if step < 0:
            raise ValueError(f"steps are counted from 0, got {step}")
        epoch, place = divmod(step, self.steps_per_epoch())
        rows = [self._filled[row] for row in self._epoch(epoch)[place]]
        rows += [np.empty(0, np.int64)] * (self.rows - len(rows))
        records = tuple(tuple(self.examples[index].record for index in row) for row in rows)
        return Batch(self._lay(self._source, rows), self._lay(self._target, rows), records)

    def padding(self, epoch: int = 0) -> float:
        """The share of the numbers in an epoch's batches that is filling."""
        spent = 2 * self.steps_per_epoch() * self.rows * self.places
        return 1 - int(self._source.lengths.sum() + self._target.lengths.sum()) / spent

    def _draw(self, number: int) -> list[Numbers]:
        if number < 0:
            raise ValueError(f"epochs are counted from 0, got {number}")
        order = _chance(self.seed, number).permutation(len(self._filled))
        return [order[first : first + self.rows] for first in range(0, len(order), self.rows)]

    def _lay(self, side: Sequences, rows: Sequence[Numbers]) -> Padded:
        """The sequences of one side, end to end in each row, and their numbers there."""
        indices, counts = np.concatenate(rows), np.array([len(row) for row in rows])
        lengths, row = side.lengths[indices], np.repeat(np.arange(len(rows)), counts)
        ends = np.cumsum(lengths)
        before = np.concatenate(([0], ends))[np.cumsum(counts) - counts]  # tokens in the rows above
        number = np.arange(len(indices)) - (np.cumsum(counts) - counts)[row] + 1
        within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
        positions = np.repeat(row * self.places + ends - lengths - before[row], lengths) + within
        data, documents = np.full(len(rows) * self.places, PAD, np.int64), np.zeros(len(rows) * self.places, np.int64)
        data[positions] = side.data[np.repeat(side.starts[indices], lengths) + within]
        documents[positions] = np.repeat(number, lengths)
        whole, numbers = (torch.from_numpy(values.reshape(len(rows), self.places)) for values in (data, documents))
        return Padded(whole, numbers > 0, numbers)


def fill(lengths: NDArray[np.int64], places: int, chance: np.random.Generator) -> list[Numbers]:
    """Pack examples into rows by the lengths of their two sides, (examples, 2).

    They are taken in a random order, so that an order by length in the data does no harm. Each goes to the open row that it
    leaves fullest, or to a new one where it fits into none.
    """
    room = np.full((OPEN, 2), places)
    rows: list[list[int]] = [[] for _ in range(OPEN)]
    closed: list[list[int]] = []
    for index in chance.permutation(len(lengths)).tolist():
        free = room - lengths[index]
        total = np.where(free.min(1) >= 0, free.sum(1), 4 * places)
        best = int(total.argmin())
        if total[best] > 2 * places:
            best = int(room.sum(1).argmin())
            closed.append(rows[best])
            rows[best], room[best] = [], places
        rows[best].append(index)
        room[best] -= lengths[index]
    return [np.array(row, np.int64) for row in (*closed, *rows) if row]


def _chance(*seeds: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(list(seeds))))
