"""Transformer decoder steps with a static KV cache; equals `decoding/engines/eager/transformer.py`.

Keys and values of all rows of a sentence are appended to the cache, and a back-pointer table, which all layers share, says
which of them are each row's own past: reordering hypotheses reorders nothing but the table. All rows of a sentence read one
memory of its source.
"""

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.attention.multihead import MultiHead
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory
from regard.decoding.engines.cuda import fused_layer
from regard.decoding.engines.cuda.layer import Rows, run_layer
from regard.decoding.engines.cuda.matrices import Norm, Weights, cast_linear, cast_norm, cast_to, collect_weights
from regard.decoding.engines.cuda.types import Counter
from regard.decoding.engines.eager import transformer
from regard.decoding.engines.types import Numbers
from regard.models.decoders import DecoderMemory
from regard.models.decoders.transformer import Transformer
from regard.user_cache import set_compiler_cache

BACKENDS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Attention backends on a GPU that need no plan for every new shape."""
UNWRITTEN = -1
"""Table entry of a position where nothing is written."""


def covers(decoder: Any) -> str | None:
    """Reason why these steps do not cover the decoder, or None."""
    if reason := transformer.covers(decoder):
        return reason
    for layer in decoder.layers:
        cross = layer.cross
        if not isinstance(cross, MultiHead) or type(cross.score) is not ScaledDot:
            return f"needs a source read by heads of scaled_dot, got {type(cross).__name__} of {cross.score}"
        if cross.key_heads != cross.heads or cross.how != "concat":
            return "needs as many heads of keys as of queries over the source, joined by concat"
        if not isinstance(cross.output, nn.Linear):
            return "needs heads that are projected to the output"
        if type(layer.around_self.norm) is not nn.LayerNorm or layer.self.query.bias is None:
            return "needs layer norms, and matrices with biases"
    return None


class Engine:
    """CUDA engine of a Transformer decoder in one precision."""

    def __init__(self, decoder: Transformer, dtype: torch.dtype, compiled: bool = False):
        self.dtype = dtype
        if compiled:
            set_compiler_cache()
        self.through = torch.compile(run_layer, dynamic=False) if compiled else run_layer
        self.embedding, output = decoder.embedding, cast(Any, decoder.output)
        embedding = self.embedding
        self.table, self.scale = cast_to(dtype, embedding.table.weight), embedding.scale
        self.embedding_norm, self.widen = cast_norm(embedding.norm, dtype), cast_linear(decoder.widen, dtype)
        self.adds = (
            embedding.positions is not None
            and embedding.positions.join == "add"
            and self.embedding_norm is None
            and self.widen is None
        )
        """True if token and position embeddings are added, and nothing else is done."""
        self.layers = collect_weights(decoder, dtype)
        self.fused = not compiled and fused_layer.covers(self.layers, self.table.device, dtype) is None
        self.enters: Norm | None = cast_norm(decoder.layers[0].around_self.norm, dtype) if self.layers[0].first else None
        self.fit: Weights | None = cast_linear(output.fit, dtype)
        self.onto: Weights = cast_to(dtype, output.matrix(embedding.table.weight)), cast_to(dtype, output.bias)
        self.vocabulary = len(output.bias)
        self.limit: int | None = getattr(embedding.positions, "limit", None)
        self.places: dict[int, Float[Tensor, "room size"] | None] = {}

    def steps(self, memory: DecoderMemory, sentences: int, width: int, room: int) -> "TransformerSteps":
        """Allocate the buffers of steps for sentences with memories of this shape."""
        return TransformerSteps(self, memory, sentences, width, room)

    def refuse(self) -> None:
        """Raise the decoder's own error for a step beyond its limit."""
        self.embedding(torch.zeros(1, 1, dtype=torch.long, device=self.table.device), self.limit or 0)

    def positions(self, room: int) -> Float[Tensor, "room size"] | None:
        """Vectors of the first positions; zero, and never used, beyond the decoder's limit."""
        if room not in self.places:
            encoding = self.embedding.positions
            self.places[room] = None
            if encoding is not None:
                known = room if self.limit is None else min(room, self.limit)
                vectors = encoding.at(torch.arange(known, device=self.table.device))
                self.places[room] = F.pad(cast_to(self.dtype, vectors), (0, 0, 0, room - known))
        return self.places[room]


class TransformerSteps:
    """Decoder state of a number of sentences: KV caches, back-pointer table and sources."""

    def __init__(self, engine: Engine, memory: DecoderMemory, sentences: int, width: int, room: int):
        self.engine, self.width = engine, width
        like: dict[str, Any] = {"dtype": engine.dtype, "device": engine.table.device}
        self.caches = [torch.zeros(sentences, room, width, 2 * layer.size, **like) for layer in engine.layers]
        beams = torch.arange(width, dtype=torch.int32, device=engine.table.device)
        self.own = beams[:, None].expand(sentences, width, 1).contiguous()
        self.past = torch.full((sentences, width, room), UNWRITTEN, dtype=torch.int32, device=engine.table.device)
        """Back-pointer table: the row of its sentence that each row sees at each position."""
        self.sources = list[Memory]()
        for source in memory.memories.values():
            shapes = ((sentences, keys, heads, size) for _, heads, keys, size in (tensor.shape for tensor in source[:2]))
            keys, values = (torch.zeros(shape, **like).transpose(1, 2) for shape in shapes)
            self.sources.append(Memory(keys, values))
        self.keep = torch.ones(sentences, self.sources[0].keys.shape[2], dtype=torch.bool, device=engine.table.device)
        self.places = engine.positions(room)
        self.placed = self.places if engine.fused and engine.adds else None

    def begin(self, memory: DecoderMemory, rows: Numbers) -> None:
        """Copy a batch into the buffers, in its initial state."""
        memories = list(memory.memories.values())
        copy_rows(list_keys_and_values(self.sources), list_keys_and_values(memories), rows)
        if memories[0].keep is not None:
            copy_rows([self.keep], [memories[0].keep], rows)
        if not self.engine.fused:
            self.clear()

    def clear(self) -> None:
        """Clear the caches of NaN, even from earlier batches: masked values are multiplied by zero.

        A fully masked source yields zero: its values are set to zero.
        """
        self.past.fill_(UNWRITTEN)
        for cache in self.caches:
            cache.zero_()
        blind = ~self.keep.any(1, keepdim=True)
        self.keep |= blind
        for source in self.sources:
            source.values.masked_fill_(blind[..., None, None], 0.0)

    def take(self, other: "TransformerSteps", rows: Int[Tensor, " sentences"]) -> None:
        """Copy selected sentences of another state, whose buffers are of the same size or smaller."""
        room = other.past.shape[2]
        self.past.fill_(UNWRITTEN)
        self.past[:, :, :room] = other.past.index_select(0, rows)
        self.keep.copy_(other.keep.index_select(0, rows))
        for mine, theirs in zip(self.caches, other.caches, strict=True):
            mine[:, :room] = theirs.index_select(0, rows)
            mine[:, room:] = 0.0
        for buffer, tensor in zip(list_keys_and_values(self.sources), list_keys_and_values(other.sources), strict=True):
            buffer.copy_(tensor.index_select(0, rows))

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter) -> Rows:
        """Decoding step: one token for each row in, the last layer's output out."""
        engine, data = self.engine, self.embed(tokens, place)
        if not engine.fused:
            return self.masked(data, parents, place)
        buffers = fused_layer.AttentionBuffers(self.caches, self.sources, self.past, self.keep)
        fused_layer.update_backpointers(self.past, parents, place)
        if engine.enters is not None and fused_layer.can_fuse(engine.layers, len(tokens)):
            return fused_layer.run_fused_layers(engine.layers, engine.enters, data, buffers, place)
        return fused_layer.run_layers(engine.layers, engine.enters, data, buffers, place)

    def prepare(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "1 vocabulary"]:
        """Launch our own kernels of a step, and allocate a row of logits."""
        engine = self.engine
        if engine.fused:
            size = engine.layers[0].threefold[0].shape[1]
            data = engine.table.new_empty(len(tokens), size) if self.placed is None else self.embed(tokens, place)
            fused_layer.update_backpointers(self.past, parents, place)
            buffers = fused_layer.AttentionBuffers(self.caches, self.sources, self.past, self.keep)
            fused_layer.prepare(engine.layers, engine.enters, data, buffers, place)
        return engine.onto[0].new_empty(1, engine.vocabulary)

    def masked(self, data: Rows, parents: Int[Tensor, "sentences width"], place: Counter) -> Rows:
        """Run all layers by PyTorch's kernels, with masks that all layers share."""
        if self.width > 1:
            self.past.copy_(self.past.gather(1, parents[..., None].expand_as(self.past)))
        self.past.index_copy_(2, place, self.own)
        masks = (
            build_additive_mask(self.past[..., None] == self.own[0, :, 0], data).flatten(2),
            build_additive_mask(self.keep[:, None], data),
        )
        enters = self.engine.enters
        both = data, data if enters is None else F.layer_norm(data, *enters)
        with restrict_backends(data.device):
            for layer, cache, source in zip(self.engine.layers, self.caches, self.sources, strict=True):
                both = self.engine.through(layer, both, cache, source, masks, place)
        return both[1]

    def embed(self, tokens: Int[Tensor, " rows"], place: Counter) -> Rows:
        """Embeddings of tokens at a position."""
        engine, positions = self.engine, self.engine.embedding.positions
        if self.placed is not None:
            return fused_layer.embed(tokens, engine.table, engine.scale, self.placed, place)
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

    def project(self, hidden: Rows) -> Float[Tensor, "rows vocabulary"]:
        """Logits of these rows."""
        return F.linear(hidden if self.engine.fit is None else F.linear(hidden, *self.engine.fit), *self.engine.onto)


def restrict_backends(where: torch.device) -> AbstractContextManager[Any]:
    """Restrict PyTorch's attention to a few backends on a GPU."""
    return sdpa_kernel(BACKENDS) if where.type == "cuda" else nullcontext()


def build_additive_mask(allowed: Bool[Tensor, "*places"], like: Tensor) -> Float[Tensor, "*places"]:
    """Additive mask: 0 where a key is allowed, else -infinity."""
    return torch.zeros(allowed.shape, dtype=like.dtype, device=like.device).masked_fill_(~allowed, -math.inf)


def list_keys_and_values(memories: Iterable[Memory]) -> list[Tensor]:
    """Keys and values of all layers."""
    return [side for memory in memories for side in memory[:2]]


def copy_rows(targets: list[Tensor], sources: list[Tensor], rows: Numbers) -> None:
    """Copy these rows of tensors to the first rows of others: in one slice where they are consecutive."""
    count, first = len(rows), int(rows[0])
    if np.array_equal(rows, np.arange(first, first + count)):
        chosen = [source[first : first + count] for source in sources]
    else:
        places = torch.from_numpy(rows).to(sources[0].device)
        chosen = [source.index_select(0, places) for source in sources]
    torch._foreach_copy_([target[:count] for target in targets], chosen)
