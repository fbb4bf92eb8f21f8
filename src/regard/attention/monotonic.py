"""Hard monotonic alignment: finds each query's stop by scoring blocks of keys, none beyond the stop's block."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.scope import Offset, Scope
from regard.attention.scope.padding import Padding
from regard.attention.score import compare
from regard.attention.types import Memory

BLOCK = 32
"""Keys of a block."""

Place = Int[Tensor, " rows"]
Positions = Int[Tensor, "some spots"]


class MonotonicStep(NamedTuple):
    """One query per row, and the memory it moves over.

    There may be several rows for each source, next to each other, which share its memory: the hypotheses of beam search.
    """

    query: Float[Tensor, "rows 1 1 query"]
    memory: Memory
    score: Any
    scope: Scope
    offset: Offset

    @property
    def keys(self) -> int:
        """The number of keys, which is also the position beyond the last."""
        return self.memory.keys.shape[2]

    @torch.no_grad()
    def stop(self, place: Place) -> Place:
        """The first key with a score above 0 from each row's position on, or the position beyond the last.

        Only rows without a stop score the next block, so that all steps of a row together score each key once, and one
        block more for each step. An exported program, which has no data-dependent loop, scores all keys at once.
        """
        if torch.compiler.is_exporting():
            return self.first(place)
        rows = (place < self.keys).nonzero()[:, 0]
        while len(rows):
            positions = place[rows, None] + torch.arange(BLOCK, device=place.device)
            scores = compare(self.score, self.query[rows], self.gather(self.memory.keys, positions, rows))
            stops = (scores[:, 0, 0] > 0) & self.allows(positions, rows)
            stopped = stops.any(-1)
            place = place.index_add(0, rows, torch.where(stopped, stops.long().argmax(-1), BLOCK)).clamp_max(self.keys)
            rows = rows[~stopped & (place[rows] < self.keys)]
        return place

    def first(self, place: Place) -> Place:
        """The result of `stop`, from the scores of all keys at once."""
        positions = torch.arange(self.keys, device=place.device).expand(place.shape[0], -1)
        scores = compare(self.score, self.query, self.gather(self.memory.keys, positions))
        stops = (scores[:, 0, 0] > 0) & self.allows(positions) & (positions >= place[:, None])
        return positions.masked_fill(~stops, self.keys).amin(-1)

    def gather(
        self, data: Float[Tensor, "sources 1 keys dim"], positions: Positions, rows: Int[Tensor, " some"] | None = None
    ) -> Float[Tensor, "some 1 spots dim"]:
        """Gather elements at these positions of some rows, or of all; positions are clamped to the source."""
        return data[self.sources(rows)[:, None], 0, positions.clamp(0, self.keys - 1)][:, None]

    def allows(self, positions: Positions, rows: Int[Tensor, " some"] | None = None) -> Bool[Tensor, "some spots"]:
        """Mask of these positions of some rows, or of all: True where the query may see a key."""
        memory, sources = self.memory, self.sources(rows)[:, None]
        scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        scope.check(memory.keys.shape[0], 1, 1, self.keys)
        offset = torch.zeros(self.query.shape[0], dtype=torch.long, device=positions.device) + self.offset
        offset = (offset if rows is None else offset[rows])[:, None]
        allowed = scope(sources, torch.zeros_like(sources), offset, positions.clamp(0, self.keys - 1))
        return allowed & (positions >= 0) & (positions < self.keys)

    def sources(self, rows: Int[Tensor, " some"] | None) -> Int[Tensor, " some"]:
        """The index of the source of each of these rows."""
        queries, sources = self.query.shape[0], self.memory.keys.shape[0]  # len() would fix them in an exported program
        rows = torch.arange(queries, device=self.query.device) if rows is None else rows
        return rows // (queries // sources)
