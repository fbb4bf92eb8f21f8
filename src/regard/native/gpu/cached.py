"""The Transformer's decoder with caches that never move: what `native/transformer.py` computes, in tensors of fixed size.

Keys and values of all rows of a sentence are written behind the last, and a mask, which all layers share, says which of them
are each row's own past: a search that reorders its hypotheses reorders nothing but the mask. All rows of a sentence read one
memory of its source.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.attention.heads import MultiHead
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory
from regard.models.decoders import Remembered
from regard.models.decoders.transformer import Transformer
from regard.native import transformer
from regard.native.gpu.layer import Rows, through
from regard.native.gpu.matrices import Norm, Weights, cast_to, linear, matrices, norm
from regard.native.gpu.types import Counter

KERNELS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""On a GPU: those that need no search for a plan of their own for every new shape."""


def covers(decoder: Any) -> str | None:
    """None where these steps compute what this decoder does, else the reason that they do not."""
    if reason := transformer.covers(decoder):
        return reason
    for layer in decoder.layers:
        cross = layer.cross
        if not isinstance(cross, MultiHead) or type(cross.score) is not ScaledDot:
            return f"needs a source read by heads of scaled_dot, got {type(cross).__name__} of {cross.score}"
        if cross.key_heads != cross.heads or cross.how != "concat":
            return "needs as many heads of keys as of queries over the source, joined by concat"
        if type(layer.around_self.norm) is not nn.LayerNorm or layer.self.query.bias is None:
            return "needs layer norms, and matrices with biases"
    return None


class Engine:
    """The decoder's matrices in one precision, ready for steps."""

    def __init__(self, decoder: Transformer, dtype: torch.dtype, compiled: bool = False):
        self.dtype = dtype
        self.through = torch.compile(through, dynamic=False) if compiled else through
        self.embedding, output = decoder.embedding, cast(Any, decoder.output)
        embedding = self.embedding
        self.table, self.scale = cast_to(dtype, embedding.table.weight), embedding.scale
        self.embedding_norm, self.widen = norm(embedding.norm, dtype), linear(decoder.widen, dtype)
        self.layers = matrices(decoder, dtype)
        self.enters: Norm | None = norm(decoder.layers[0].around_self.norm, dtype) if self.layers[0].first else None
        self.fit: Weights | None = linear(output.fit, dtype)
        self.onto: Weights = cast_to(dtype, output.matrix(embedding.table.weight)), cast_to(dtype, output.bias)
        self.vocabulary = len(output.bias)
        self.limit: int | None = getattr(embedding.positions, "limit", None)
        self.places: dict[int, Float[Tensor, "room size"] | None] = {}

    def steps(self, memory: Remembered, sentences: int, width: int, room: int) -> "Cached":
        """Steps for sentences that have read sources shaped like these."""
        return Cached(self, memory, sentences, width, room)

    def refuse(self) -> None:
        """Raise the decoder's own error for a step beyond its limit."""
        self.embedding(torch.zeros(1, 1, dtype=torch.long, device=self.table.device), self.limit or 0)

    def positions(self, room: int) -> Float[Tensor, "room size"] | None:
        """The vectors of the first places; those that the decoder has none for are zero, and never used."""
        if room not in self.places:
            made = self.embedding.positions
            self.places[room] = None
            if made is not None:
                known = room if self.limit is None else min(room, self.limit)
                vectors = made.at(torch.arange(known, device=self.table.device))
                self.places[room] = F.pad(cast_to(self.dtype, vectors), (0, 0, 0, room - known))
        return self.places[room]


class Cached:
    """The caches of so many sentences, who descends from whom, and the sources."""

    def __init__(self, engine: Engine, memory: Remembered, sentences: int, width: int, room: int):
        self.engine, self.width = engine, width
        like: dict[str, Any] = {"dtype": engine.dtype, "device": engine.table.device}
        self.caches = [torch.zeros(sentences, room, width, 2 * layer.size, **like) for layer in engine.layers]
        self.mask = torch.full((sentences, width, room, width), -math.inf, **like)
        own = torch.full((width, width), -math.inf, **like).fill_diagonal_(0.0)
        self.own = own[:, None].expand(sentences, width, 1, width).contiguous()
        self.sources = list[Memory]()
        for kept in memory.memories.values():
            keys, values = (each.new_empty(sentences, *each.shape[1:], **like) for each in kept[:2])
            self.sources.append(Memory(keys, values))
        self.hidden = torch.zeros(sentences, 1, self.sources[0].keys.shape[2], **like)
        self.places = engine.positions(room)

    def begin(self, memory: Remembered, rows: Int[Tensor, " sentences"]) -> None:
        """Take a batch in; nothing has been written.

        What is masked is still multiplied, by zero: a cache may hold nothing that is no number, not even of another batch.
        """
        self.mask.fill_(-math.inf)
        for cache in self.caches:
            cache.zero_()
        keep = next(iter(memory.memories.values())).keep
        seen = None if keep is None else keep.index_select(0, rows)
        blind = None if seen is None else ~seen.any(1)[:, None]
        if seen is not None and blind is not None:  # who may look at nothing finds zero: it looks at zeros
            self.hidden.zero_().masked_fill_(~(seen | blind)[:, None], -math.inf)
        for mine, given in zip(self.sources, memory.memories.values(), strict=True):
            torch.index_select(given.keys, 0, rows, out=mine.keys)
            torch.index_select(given.values, 0, rows, out=mine.values)
            if blind is not None:
                mine.values.masked_fill_(blind[..., None, None], 0.0)

    def take(self, other: "Cached", rows: Int[Tensor, " sentences"]) -> None:
        """Go on from other caches, which have as much room or less."""
        room = other.mask.shape[2]
        self.mask.fill_(-math.inf)
        self.mask[:, :, :room] = other.mask.index_select(0, rows)
        self.hidden.copy_(other.hidden.index_select(0, rows))
        for mine, theirs in zip(self.caches, other.caches, strict=True):
            mine[:, :room] = theirs.index_select(0, rows)
            mine[:, room:] = 0.0
        for source, given in zip(self.sources, other.sources, strict=True):
            torch.index_select(given.keys, 0, rows, out=source.keys)
            torch.index_select(given.values, 0, rows, out=source.values)

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter) -> Rows:
        """One token for each row: what its logits are made of."""
        if self.width > 1:
            self.mask.copy_(self.mask.gather(1, parents[..., None, None].expand_as(self.mask)))
        self.mask.index_copy_(2, place, self.own)
        data = self.embed(tokens, place)
        enters = self.engine.enters
        both = data, data if enters is None else F.layer_norm(data, *enters)
        masks = self.mask.flatten(2), self.hidden
        with kernels(data.device):
            for layer, cache, source in zip(self.engine.layers, self.caches, self.sources, strict=True):
                both = self.engine.through(layer, both, cache, source, masks, place)
        return both[1]

    def embed(self, tokens: Int[Tensor, " rows"], place: Counter) -> Rows:
        """The vectors of tokens at a place."""
        engine, positions = self.engine, self.engine.embedding.positions
        vectors = F.embedding(tokens, engine.table)
        here = None if self.places is None else self.places.index_select(0, place)
        if here is None or positions is None:
            vectors = vectors * engine.scale
        elif positions.join == "add":
            vectors = torch.add(here, vectors, alpha=engine.scale)
        else:
            vectors = torch.cat((vectors * engine.scale, here.expand(len(tokens), -1)), dim=1)
        if engine.embedding_norm is not None:
            vectors = F.layer_norm(vectors, *engine.embedding_norm)
        return vectors if engine.widen is None else F.linear(vectors, *engine.widen)

    def project(self, found: Rows) -> Float[Tensor, "rows vocabulary"]:
        """The logits of these rows."""
        return F.linear(found if self.engine.fit is None else F.linear(found, *self.engine.fit), *self.engine.onto)


def kernels(where: torch.device) -> AbstractContextManager[Any]:
    """Let PyTorch choose among few kernels on a GPU."""
    return sdpa_kernel(KERNELS) if where.type == "cuda" else nullcontext()
