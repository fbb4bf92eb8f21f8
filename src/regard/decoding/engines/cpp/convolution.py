"""Convolutional decoder in C++, one call a step; equals `decoding/engines/eager/convolution.py`."""

import ctypes
from typing import Any, cast

from torch import nn

from regard.decoding.engines.cpp import attention
from regard.decoding.engines.cpp.attention import CrossAttention, Source
from regard.decoding.engines.cpp.build import load_library
from regard.decoding.engines.cpp.embedding import EmbeddingTable, NativeEmbedding
from regard.decoding.engines.cpp.embedding import covers as embeds
from regard.decoding.engines.cpp.matrices import (
    Matrix,
    OwningStructure,
    build_linear,
    build_matrix,
    find_address,
    make_absent_matrix,
)
from regard.decoding.engines.cpp.search import NativeSteps
from regard.decoding.engines.eager import convolution
from regard.decoding.engines.types import Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.models.decoders import DecoderMemory
from regard.models.decoders import convolution as decoders
from regard.models.output_heads.projection import Projection


class Layer(OwningStructure):
    """Layer as a C struct: its convolution at one position is a matrix over the last inputs, the oldest first."""

    _fields_ = (
        ("convolution", Matrix),
        ("query", Matrix),
        ("fit", Matrix),
        ("cross", CrossAttention),
        ("context", ctypes.c_int64),
    )


class Model(OwningStructure):
    """Convolutional decoder as a C struct."""

    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("before", ctypes.c_int64),
        ("words", EmbeddingTable),
        ("widen", Matrix),
        ("narrow", Matrix),
        ("fit", Matrix),
        ("output", Matrix),
    )


def covers(decoder: Any) -> str | None:
    """Reason why the C++ engine does not cover this decoder, or None."""
    if reason := convolution.covers(decoder):
        return reason
    reasons = [attention.covers(layer.cross) for layer in decoder.layers]
    return next(filter(None, reasons), None) or embeds(decoder.embedding)


def build_optional_matrix(layer: nn.Module, precision: str) -> Matrix:
    """Build the matrix of a linear layer, or an empty one for an identity."""
    return build_linear([layer], precision) if isinstance(layer, nn.Linear) else make_absent_matrix()


def build_layer(layer: decoders.Layer, precision: str) -> Layer:
    """Build the C struct of one layer."""
    assert layer.cross is not None
    parts = (
        build_matrix(*convolution.flatten_convolution(layer.gated), precision),
        build_linear([layer.query], precision),
        build_optional_matrix(layer.fit, precision),
        attention.build_attention(layer.cross, precision, layer.query.out_features),
    )
    return Layer(*parts, layer.cross.size, references=parts)


class Engine:
    """C++ engine of a convolutional decoder."""

    def __init__(self, decoder: decoders.Convolution, precision: str = "float32"):
        self.code, spoken = load_library(), NativeEmbedding(decoder.embedding)
        self.crosses = [cast(Any, layer.cross) for layer in decoder.layers]
        layers, output = [build_layer(layer, precision) for layer in decoder.layers], cast(Projection, decoder.output)
        table = (Layer * len(layers))(*layers)
        parts = (
            build_linear([decoder.widen], precision),
            build_linear([decoder.narrow], precision),
            build_optional_matrix(output.fit, precision),
            build_matrix(output.matrix(decoder.embedding.table.weight).detach(), output.bias.detach(), precision),
        )
        sizes = len(layers), decoder.size, decoder.before
        self.model = Model(table, *sizes, spoken.record, *parts, references=(layers, table, spoken, parts))
        self.spoken = spoken.within(self.model.words)

    def begin(self, memory: DecoderMemory) -> NativeSteps:
        """Initial state of a batch, before the first token."""
        model, memories = self.model, list(memory.memories.values())
        sources = [attention.build_source(cross, memory) for cross, memory in zip(self.crosses, memories, strict=True)]
        table, keep = (Source * len(sources))(*sources), memories[0].keep
        keep = None if keep is None else keep.contiguous()
        size = len(memories[0].values), memories[0].values.shape[2]
        handle = self.code.regard_convolution(ctypes.byref(model), table, find_address(keep), *size)
        return NativeSteps(self.code, handle, self.spoken, model.output.out, (self, sources, table, keep))

    def search(
        self, memory: DecoderMemory, most: Numbers, beams: int, best: int, length_penalty: float
    ) -> list[list[Hypothesis]]:
        """Search: the `best` hypotheses of each sentence; equals `engines.eager.beam`."""
        return self.begin(memory).search(most, beams, best, length_penalty)
