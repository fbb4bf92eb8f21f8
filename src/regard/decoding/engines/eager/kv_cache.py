"""KV cache of the CPU engine, in which nothing is reordered.

A search that reorders its hypotheses would have to copy the cache of every layer at every step. Here each step appends the
keys of all rows of a sentence, and a mask says which of them are each row's own past; only the mask, which all layers share,
is reordered. Keys that are in nobody's past any more are compacted away when they are too many.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

MIN_COMPACTION = 64
"""Cache positions below which compaction is not worth it."""
MIN_UNFUSED_ROWS = 8
"""Rows from which on three operations are faster than fused attention."""


class AncestorMask:
    """Ancestor mask: the cache positions in each row's past, as a mask to add to its scores, 0 or -infinity."""

    def __init__(self, sentences: int):
        self.sentences, self.width, self.places = sentences, 1, 0
        self.mask: Float[Tensor, "sentences width places"] | None = None
        """None while there has been one row for each sentence all along, so that every position is its past."""
        self.least = MIN_COMPACTION

    @property
    def crowded(self) -> bool:
        """True if there are twice as many positions as after the last compaction."""
        return self.mask is not None and self.places >= 2 * self.least

    def grow(self, rows: int, parents: Int[Tensor, " rows"] | None) -> None:
        """Append a position for each row, whose past is that of its parent and itself."""
        before, places, width = self.width, self.places, rows // self.sentences
        self.width, self.places = width, places + width
        if self.mask is None and width == before == 1:
            return
        past = torch.zeros(self.sentences, 1, places) if self.mask is None else self.mask
        mine = torch.arange(rows) if parents is None else parents
        mine = mine.view(self.sentences, width, 1) % before
        self.mask = torch.full((self.sentences, width, self.places), -math.inf)
        self.mask[:, :, :places] = past.gather(1, mine.expand(-1, -1, places))
        self.mask[:, :, places:].diagonal(dim1=1, dim2=2).zero_()

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences."""
        self.sentences = len(staying)
        self.mask = None if self.mask is None else self.mask[staying]

    def squeeze(self) -> Int[Tensor, "sentences alive"]:
        """Compact positions in nobody's past; returns those kept, padded with others where a sentence has fewer."""
        assert self.mask is not None
        dead = self.mask.amax(1) == -math.inf
        alive = dead.int().argsort(dim=1, stable=True)[:, : int((~dead).sum(1).max())]
        self.mask = self.mask.gather(2, alive[:, None].expand(-1, self.mask.shape[1], -1))
        self.places = alive.shape[1]
        self.least = max(MIN_COMPACTION, self.places)
        return alive


class KVCache:
    """KV cache of one layer, in a buffer that doubles when it is full."""

    def __init__(self, heads: int):
        self.heads, self.used = heads, 0
        self.room: Float[Tensor, "sides sentences heads places dim"] = torch.empty(2, 0, heads, 0, 0)

    def __call__(
        self, threefold: Float[Tensor, "rows three_sizes"], ancestors: AncestorMask, scale: float
    ) -> Float[Tensor, "rows size"]:
        """Self-attention: append the new keys and values, and attend to each row's past."""
        rows, width = threefold.shape[0], ancestors.width
        sides = threefold.view(rows // width, width, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # 3 sentences heads width dim
        self.write(sides[1:])
        query, keys, values = sides[0], *self.room.narrow(3, 0, ancestors.places).unbind(0)
        if ancestors.mask is None and rows < MIN_UNFUSED_ROWS:
            context = F.scaled_dot_product_attention(query, keys, values, scale=scale)
        else:
            scores = (query @ keys.mT).mul_(scale)
            scores = scores if ancestors.mask is None else scores.add_(ancestors.mask[:, None])
            context = scores.softmax(-1) @ values
        return context.transpose(1, 2).reshape(rows, -1)

    def write(self, sides: Float[Tensor, "sides sentences heads width dim"]) -> None:
        """Append keys and values."""
        width = sides.shape[3]
        if self.used + width > self.room.shape[3]:
            room = sides.new_empty(*sides.shape[:3], max(16, 2 * (self.used + width)), sides.shape[4])
            if self.used:
                room[:, :, :, : self.used] = self.room[:, :, :, : self.used]
            self.room = room
        self.room.narrow(3, self.used, width).copy_(sides)
        self.used += width

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences."""
        self.room = self.room[:, staying]

    def take(self, places: Int[Tensor, "sentences alive"]) -> None:
        """Keep these positions of each sentence alone."""
        wanted = places[None, :, None, :, None].expand(2, -1, self.heads, -1, self.room.shape[4])
        self.room, self.used = self.room.gather(3, wanted), places.shape[1]
