"""A walk over the keys, a few at a time: whoever stops early never meets the rest."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.scope import Offset, Scope
from regard.attention.scope.padding import Padding
from regard.attention.score import compare
from regard.attention.types import Memory

BLOCK = 32
"""How many keys are met in one go."""

Place = Int[Tensor, " rows"]
Spots = Int[Tensor, "some spots"]


class Walk(NamedTuple):
    """One query a row, and the memory that it walks over.

    There may be several rows for each source, side by side, which share its memory: the beams of a search.
    """

    query: Float[Tensor, "rows 1 1 query"]
    memory: Memory
    score: Any
    scope: Scope
    offset: Offset

    @property
    def keys(self) -> int:
        """How many keys there are; the place behind the last."""
        return self.memory.keys.shape[2]

    @torch.no_grad()
    def stop(self, place: Place) -> Place:
        """The first key with a score above 0, for each row from its own place on; behind the last where there is none.

        Only rows that still walk meet the next block, so that all the walks of a row together meet each key once, and a
        block more for each walk. An exported program, which cannot end a loop by what it finds, meets all keys at once.
        """
        if torch.compiler.is_exporting():
            return self.first(place)
        rows = (place < self.keys).nonzero()[:, 0]
        while len(rows):
            spots = place[rows, None] + torch.arange(BLOCK, device=place.device)
            scores = compare(self.score, self.query[rows], self.gather(self.memory.keys, spots, rows))
            stops = (scores[:, 0, 0] > 0) & self.sees(spots, rows)
            stopped = stops.any(-1)
            place = place.index_add(0, rows, torch.where(stopped, stops.long().argmax(-1), BLOCK)).clamp_max(self.keys)
            rows = rows[~stopped & (place[rows] < self.keys)]
        return place

    def first(self, place: Place) -> Place:
        """What `stop` finds, with the scores of all keys."""
        spots = torch.arange(self.keys, device=place.device).expand(place.shape[0], -1)
        scores = compare(self.score, self.query, self.gather(self.memory.keys, spots))
        stops = (scores[:, 0, 0] > 0) & self.sees(spots) & (spots >= place[:, None])
        return spots.masked_fill(~stops, self.keys).amin(-1)

    def gather(
        self, data: Float[Tensor, "sources 1 keys dim"], spots: Spots, rows: Int[Tensor, " some"] | None = None
    ) -> Float[Tensor, "some 1 spots dim"]:
        """What stands at these spots of some rows, or of all; outside the source, whatever is nearest."""
        return data[self.sources(rows)[:, None], 0, spots.clamp(0, self.keys - 1)][:, None]

    def sees(self, spots: Spots, rows: Int[Tensor, " some"] | None = None) -> Bool[Tensor, "some spots"]:
        """At which of these spots of some rows, or of all, there is a key that the query may see."""
        memory, sources = self.memory, self.sources(rows)[:, None]
        scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        scope.check(memory.keys.shape[0], 1, 1, self.keys)
        offset = torch.zeros(self.query.shape[0], dtype=torch.long, device=spots.device) + self.offset
        offset = (offset if rows is None else offset[rows])[:, None]
        allowed = scope(sources, torch.zeros_like(sources), offset, spots.clamp(0, self.keys - 1))
        return allowed & (spots >= 0) & (spots < self.keys)

    def sources(self, rows: Int[Tensor, " some"] | None) -> Int[Tensor, " some"]:
        """The source that each of these rows reads."""
        queries, sources = self.query.shape[0], self.memory.keys.shape[0]  # len() would fix them in an exported program
        rows = torch.arange(queries, device=self.query.device) if rows is None else rows
        return rows // (queries // sources)
