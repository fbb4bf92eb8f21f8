"""Transformer decoder as one function of its weights, with KV caches that are never reordered."""

from collections.abc import Callable
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.score.scaled_dot import ScaledDot
from regard.decoding.engines.eager import attention
from regard.decoding.engines.eager.attention import FoldedAttention, ModuleAttention, split_linear
from regard.decoding.engines.eager.embedding import OutputProjection, StepEmbedding
from regard.decoding.engines.eager.kv_cache import AncestorMask, KVCache
from regard.decoding.engines.eager.linear import Buffers, prepare_linear
from regard.models.decoders import DecoderMemory
from regard.models.decoders.transformer import Layer, Transformer
from regard.models.layers.residual import Residual
from regard.models.output_heads.projection import Projection

Rows = Float[Tensor, "rows size"]


def covers(decoder: Any) -> str | None:
    """Reason why the CPU engine does not cover this decoder, or None."""
    if type(decoder) is not Transformer:
        return f"needs the Transformer decoder, got {type(decoder).__name__}"
    if decoder.outcome is not None or type(decoder.output) is not Projection:
        return "needs an output that is nothing but a projection"
    for layer in decoder.layers:
        own = layer.self
        if type(own.score) is not ScaledDot or type(own.normalise) is not Softmax or type(own.scope) is not Causal:
            return f"needs self-attention by scaled_dot and softmax, got {own.score}, {own.normalise}, {own.scope}"
        if own.key_heads != own.heads or own.how != "concat" or layer.cross is None:
            return "needs as many heads of keys as of queries, joined by concat, and an attention to the source"
        if reason := attention.covers(layer.cross):
            return reason
        if not isinstance(own.output, nn.Linear) or not isinstance(layer.feedforward[0], nn.Linear):
            return "needs an output of its self-attention, and feed-forward networks without gates"
    return None


class Engine:
    """CPU engine of a Transformer decoder."""

    def __init__(self, decoder: Transformer, precision: str = "float32"):
        self.words = StepEmbedding(decoder.embedding)
        self.widen: Callable[[Rows], Rows] = identity if isinstance(decoder.widen, nn.Identity) else decoder.widen
        self.layers = [PreparedLayer(layer, precision) for layer in decoder.layers]
        self.norm = make_norm_function(decoder.norm)
        self.output = OutputProjection(cast(Projection, decoder.output), decoder.embedding.table.weight, precision)

    def begin(self, memory: DecoderMemory) -> "Steps":
        """Initial state of a batch, before the first token."""
        return Steps(self, memory)


class PreparedLayer:
    """Prepared weights of one layer, with a fused QKV projection."""

    def __init__(self, layer: Layer, precision: str):
        own = layer.self
        self.heads, self.scale = own.heads, cast(ScaledDot, own.score).factor(torch.empty(0, 0, 0, own.head))
        self.threefold = prepare_linear((own.query, own.key, own.value), precision)
        self.own_output = prepare_linear(cast(nn.Linear, own.output), precision)
        assert layer.cross is not None
        self.cross = attention.PreparedAttention(
            layer.cross, precision, split_linear(layer.fit) if isinstance(layer.fit, nn.Linear) else None
        )
        self.inner, self.outer = (prepare_linear(cast(nn.Linear, layer.feedforward[place]), precision) for place in (0, 2))
        bend = layer.feedforward[1]
        self.bend: Callable[[Rows], Rows] = torch.relu_ if isinstance(bend, nn.ReLU) else bend
        self.around_self, self.around_cross = ResidualNorms(layer.around_self), ResidualNorms(layer.around_cross)
        self.around_feedforward = ResidualNorms(layer.around_feedforward)


def identity(data: Rows) -> Rows:
    """Identity, where there is no norm."""
    return data


def make_norm_function(norm: nn.Module) -> Callable[[Rows], Rows]:
    """Norm as a plain function, without its module if it is a layer norm."""
    if type(norm) is not nn.LayerNorm:
        return identity if isinstance(norm, nn.Identity) else norm
    shape, epsilon = norm.normalized_shape, norm.eps
    weight, bias = (None if tensor is None else tensor.detach() for tensor in (norm.weight, norm.bias))
    return lambda data: torch.layer_norm(data, shape, weight, bias, epsilon, False)


class ResidualNorms:
    """Residual connection in inference, without dropout."""

    def __init__(self, residual: Residual):
        norm = make_norm_function(residual.norm)
        self.norm_input: Callable[[Rows], Rows] = norm if residual.first else identity
        self.norm_output: Callable[[Rows], Rows] = identity if residual.first else norm


class Steps:
    """Decoder state of one batch: the KV cache of each layer, the ancestor mask, and the sources."""

    def __init__(self, engine: Engine, memory: DecoderMemory):
        self.engine, self.place, self.rooms = engine, 0, Buffers()
        memories = list(memory.memories.values())
        self.sources = [layer.cross.begin(memory) for layer, memory in zip(engine.layers, memories, strict=True)]
        self.caches = [KVCache(layer.heads) for layer in engine.layers]
        self.ancestors = AncestorMask(len(memories[0].values))

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences."""
        for source, cache in zip(self.sources, self.caches, strict=True):
            source.leave(staying)
            cache.leave(staying)
        self.ancestors.leave(staying)

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None) -> Float[Tensor, "rows vocabulary"]:
        """Decoding step: one token for each row in, logits out."""
        if self.ancestors.crowded:
            alive = self.ancestors.squeeze()
            for cache in self.caches:
                cache.take(alive)
        self.ancestors.grow(tokens.shape[0], parents)
        data = self.engine.widen(self.engine.words(tokens, self.place))
        for layer, cache, source in zip(self.engine.layers, self.caches, self.sources, strict=True):
            data = self.through(layer, data, cache, source)
        self.place += 1
        return self.engine.output(self.rooms, self.engine.norm(data))

    def through(
        self,
        layer: PreparedLayer,
        data: Rows,
        cache: KVCache,
        source: attention.BatchAttention | FoldedAttention | ModuleAttention,
    ) -> Rows:
        """Run one layer; residual sums are in place."""
        norms = layer.around_self
        context = cache(layer.threefold.within(self.rooms, norms.norm_input(data)), self.ancestors, layer.scale)
        data = norms.norm_output(layer.own_output.onto(data, context))
        norms = layer.around_cross
        data = norms.norm_output(source.onto(data, norms.norm_input(data)))
        norms = layer.around_feedforward
        inner = layer.bend(layer.inner.within(self.rooms, norms.norm_input(data)))
        return norms.norm_output(layer.outer.onto(data, inner))
