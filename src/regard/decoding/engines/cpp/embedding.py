"""Tokens as vectors in the compiled code: a table, and a vector for each place."""

import ctypes

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.decoding.engines.cpp.matrices import Kept, pointer
from regard.models.layers.embedding import Embedding


class Words(Kept):
    """A vector for each token and for each place that is known so far."""

    _fields_ = (
        ("table", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("places", ctypes.c_void_p),
        ("known", ctypes.c_int64),
    )


def covers(embedding: Embedding) -> str | None:
    """None where the compiled code makes the vectors of this embedding, else the reason that it does not."""
    if not isinstance(embedding.norm, nn.Identity):
        return "needs an embedding without a norm"
    if embedding.positions is not None and embedding.positions.join != "add":
        return f"needs positions that are added, got {embedding.positions.join}"
    return None


class Spoken:
    """An embedding as the compiled code takes it; `record` lies in the model that it was put into."""

    def __init__(self, embedding: Embedding):
        self.embedding, self.known = embedding, 0
        table = embedding.table.weight.detach().contiguous()
        self.record = Words(pointer(table), table.shape[1], embedding.scale, None, 0)
        self.held = [table]  # also what was outgrown: another search may still read it

    def within(self, record: Words) -> "Spoken":
        """The same, where the compiled code looks for it."""
        self.record = record
        return self

    def reach(self, places: int) -> None:
        """Know so many places, or fewer where the positions end before that."""
        positions = self.embedding.positions
        if positions is None or self.known >= places:
            return
        limit = getattr(positions, "limit", None)
        wanted = places if limit is None else min(places, limit)
        if self.known < wanted:
            vectors: Float[Tensor, "places size"] = positions.at(torch.arange(wanted)).detach().float().contiguous()
            self.held.append(vectors)
            self.record.places, self.record.known = pointer(vectors), wanted
            self.known = wanted  # last: a search in another thread goes by it

    def know(self, places: int) -> None:
        """The same, or raise what the embedding raises where they end before that."""
        self.reach(places)
        self.check(places - 1)

    def check(self, place: int) -> None:
        """Raise what the embedding raises for a place that it has no vector for."""
        positions = self.embedding.positions
        if positions is not None and place >= self.known:
            positions(torch.zeros(1, 1, positions.size), place)
