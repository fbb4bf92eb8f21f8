"""Embeddings of the C++ engine: a token table, and a table of positions."""

import ctypes

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.decoding.engines.cpp.matrices import OwningStructure, find_address
from regard.models.layers.embedding import Embedding


class EmbeddingTable(OwningStructure):
    """Embedding tables as a C struct: tokens, and the positions computed so far."""

    _fields_ = (
        ("table", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("places", ctypes.c_void_p),
        ("known", ctypes.c_int64),
    )


def covers(embedding: Embedding) -> str | None:
    """Reason why the C++ engine does not cover this embedding, or None."""
    if not isinstance(embedding.norm, nn.Identity):
        return "needs an embedding without a norm"
    if embedding.positions is not None and embedding.positions.join != "add":
        return f"needs positions that are added, got {embedding.positions.join}"
    return None


class NativeEmbedding:
    """Embedding for the C++ engine; `record` is the struct inside the model that it belongs to."""

    def __init__(self, embedding: Embedding):
        self.embedding, self.known = embedding, 0
        table = embedding.table.weight.detach().contiguous()
        self.record = EmbeddingTable(find_address(table), table.shape[1], embedding.scale, None, 0)
        self.references = [table]  # outgrown tables too: another search may still read them

    def within(self, record: EmbeddingTable) -> "NativeEmbedding":
        """Set the struct that the C++ engine reads."""
        self.record = record
        return self

    def reach(self, places: int) -> None:
        """Compute position vectors up to `places`, or up to the embedding's limit."""
        positions = self.embedding.positions
        if positions is None or self.known >= places:
            return
        limit = getattr(positions, "limit", None)
        wanted = places if limit is None else min(places, limit)
        if self.known < wanted:
            vectors: Float[Tensor, "places size"] = positions.at(torch.arange(wanted)).detach().float().contiguous()
            self.references.append(vectors)
            self.record.places, self.record.known = find_address(vectors), wanted
            self.known = wanted  # last: a search in another thread reads it

    def know(self, places: int) -> None:
        """Compute position vectors up to `places`; raises the embedding's error beyond its limit."""
        self.reach(places)
        self.check(places - 1)

    def check(self, place: int) -> None:
        """Raise the embedding's error for a position beyond its limit."""
        positions = self.embedding.positions
        if positions is not None and place >= self.known:
            positions(torch.zeros(1, 1, positions.size), place)
