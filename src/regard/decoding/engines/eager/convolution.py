"""Convolutional decoder as one function of its weights: one matrix for each convolution."""

from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Memory
from regard.decoding.engines.eager import attention
from regard.decoding.engines.eager.attention import Bias, Matrix
from regard.decoding.engines.eager.embedding import OutputProjection, StepEmbedding
from regard.decoding.engines.eager.linear import Buffers, prepare_linear, prepare_matrix
from regard.models.decoders import DecoderMemory, repeat_for_beams
from regard.models.decoders.convolution import Convolution, Layer, count_source_positions
from regard.models.layers.gated_convolution import SQRT_HALF, GatedConvolution
from regard.models.output_heads.projection import Projection

Rows = Float[Tensor, "rows _"]


def covers(decoder: Any) -> str | None:
    """Reason why the CPU engine does not cover this decoder, or None."""
    if type(decoder) is not Convolution:
        return f"needs the convolutional decoder, got {type(decoder).__name__}"
    if decoder.outcome is not None or type(decoder.output) is not Projection:
        return "needs an output that is nothing but a projection"
    attends = all(layer.cross is not None for layer in decoder.layers)
    return None if attends else "needs an attention to the source in every layer"


def flatten_convolution(gated: GatedConvolution) -> tuple[Matrix, Bias]:
    """Convolution at one position: a matrix over the last inputs, the oldest first, and a bias."""
    weight, bias = gated.convolution.weight.detach(), cast(Tensor, gated.convolution.bias).detach()
    return weight.transpose(1, 2).flatten(1), bias


class Engine:
    """CPU engine of a convolutional decoder."""

    def __init__(self, decoder: Convolution, precision: str = "float32"):
        self.words = StepEmbedding(decoder.embedding)
        self.widen, self.narrow = prepare_linear(decoder.widen, precision), prepare_linear(decoder.narrow, precision)
        self.layers = [PreparedLayer(layer, precision) for layer in decoder.layers]
        self.size, self.before = decoder.size, decoder.before
        self.output = OutputProjection(cast(Projection, decoder.output), decoder.embedding.table.weight, precision)

    def begin(self, memory: DecoderMemory) -> "Steps":
        """Initial state of a batch, before the first token."""
        return Steps(self, memory)


class PreparedLayer:
    """Prepared weights of one layer."""

    def __init__(self, layer: Layer, precision: str):
        assert layer.cross is not None
        self.convolution, self.query = (
            prepare_matrix(*flatten_convolution(layer.gated), precision),
            prepare_linear(layer.query, precision),
        )
        self.cross = attention.PreparedAttention(layer.cross, precision)
        self.fit = prepare_linear(layer.fit, precision) if isinstance(layer.fit, nn.Linear) else None


class SourceAttention:
    """Cross-attention of one layer over a batch, scaled by √m as it is a mean over m positions."""

    def __init__(self, layer: PreparedLayer, memory: Memory):
        self.fit, self.looking, self.scale = layer.fit, layer.cross.begin(memory), count_source_positions(memory).sqrt()

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences."""
        self.looking.leave(staying)
        self.scale = self.scale[staying]

    def onto(self, before: Rows, query: Rows) -> Rows:
        """Add the projected context to `before`, in place."""
        context = self.looking(query) * repeat_for_beams(self.scale, query.shape[0])
        return before.add_(context) if self.fit is None else self.fit.onto(before, context)


class Steps:
    """Decoder state of one batch: the last inputs of each layer, and the sources."""

    def __init__(self, engine: Engine, memory: DecoderMemory):
        self.engine, self.place, self.rooms = engine, 0, Buffers()
        memories = list(memory.memories.values())
        self.sources = [SourceAttention(layer, memory) for layer, memory in zip(engine.layers, memories, strict=True)]
        nothing = memories[0].values.new_zeros(len(memories[0].values), engine.before * engine.size)
        self.inputs: list[Rows] = [nothing] * len(engine.layers)

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences; inputs follow with their rows."""
        for source in self.sources:
            source.leave(staying)

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None) -> Float[Tensor, "rows vocabulary"]:
        """Decoding step: one token for each row in, logits out."""
        if parents is not None:
            self.inputs = [tensor.index_select(0, parents) for tensor in self.inputs]
            for source in self.sources:
                source.looking.follow(parents)
        token = self.engine.words(tokens, self.place)
        self.place += 1
        data = self.engine.widen(token)
        for number, layer in enumerate(self.engine.layers):
            whole = torch.cat((self.inputs[number], data), dim=1)
            self.inputs[number] = whole[:, self.engine.size :]
            hidden = F.glu(layer.convolution.within(self.rooms, whole), dim=1)
            query = layer.query(hidden).add_(token).mul_(SQRT_HALF)
            data = self.sources[number].onto(hidden, query).mul_(SQRT_HALF).add_(data).mul_(SQRT_HALF)
        return self.engine.output(self.rooms, self.engine.narrow(data))
