"""Convolutional decoder in C++, one call a step; equals `decoding/engines/cpu/convolution.py`."""

import ctypes
from typing import Any, cast

from torch import nn

from regard.decoding.engines.candidates import Numbers
from regard.decoding.engines.cpp import attention
from regard.decoding.engines.cpp.attention import Look, Source
from regard.decoding.engines.cpp.build import library
from regard.decoding.engines.cpp.embedding import Spoken, Words
from regard.decoding.engines.cpp.embedding import covers as embeds
from regard.decoding.engines.cpp.matrices import Kept, Matrix, affine, matrix, nothing, pointer
from regard.decoding.engines.cpp.search import Stepping
from regard.decoding.engines.cpu import convolution
from regard.decoding.hypothesis import Found
from regard.models.decoders import Remembered
from regard.models.decoders import convolution as decoders
from regard.models.output_heads.projection import Projection


class Layer(Kept):
    """Layer as a C struct: its convolution at one position is a matrix over the last inputs, the oldest first."""

    _fields_ = (
        ("convolution", Matrix),
        ("query", Matrix),
        ("fit", Matrix),
        ("cross", Look),
        ("context", ctypes.c_int64),
    )


class Model(Kept):
    """Convolutional decoder as a C struct."""

    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("before", ctypes.c_int64),
        ("words", Words),
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


def maybe(layer: nn.Module, precision: str) -> Matrix:
    """Build the matrix of a linear layer, or an empty one for an identity."""
    return affine([layer], precision) if isinstance(layer, nn.Linear) else nothing()


def layer_of(made: decoders.Layer, precision: str) -> Layer:
    """Build the C struct of one layer."""
    assert made.cross is not None
    parts = (
        matrix(*convolution.at_one_place(made.gated), precision),
        affine([made.query], precision),
        maybe(made.fit, precision),
        attention.look(made.cross, precision, made.query.out_features),
    )
    return Layer(*parts, made.cross.size, held=parts)


class Engine:
    """C++ engine of a convolutional decoder."""

    def __init__(self, decoder: decoders.Convolution, precision: str = "float32"):
        self.code, spoken = library(), Spoken(decoder.embedding)
        self.crosses = [cast(Any, layer.cross) for layer in decoder.layers]
        layers, output = [layer_of(each, precision) for each in decoder.layers], cast(Projection, decoder.output)
        table = (Layer * len(layers))(*layers)
        parts = (
            affine([decoder.widen], precision),
            affine([decoder.narrow], precision),
            maybe(output.fit, precision),
            matrix(output.matrix(decoder.embedding.table.weight).detach(), output.bias.detach(), precision),
        )
        sizes = len(layers), decoder.size, decoder.before
        self.model = Model(table, *sizes, spoken.record, *parts, held=(layers, table, spoken, parts))
        self.spoken = spoken.within(self.model.words)

    def begin(self, memory: Remembered) -> Stepping:
        """Initial state of a batch, before the first token."""
        model, kept = self.model, list(memory.memories.values())
        given = [attention.source(cross, each) for cross, each in zip(self.crosses, kept, strict=True)]
        table, keep = (Source * len(given))(*given), kept[0].keep
        keep = None if keep is None else keep.contiguous()
        size = len(kept[0].values), kept[0].values.shape[2]
        handle = self.code.regard_convolution(ctypes.byref(model), table, pointer(keep), *size)
        return Stepping(self.code, handle, self.spoken, model.output.out, (self, given, table, keep))

    def search(self, memory: Remembered, most: Numbers, beams: int, best: int, length_penalty: float) -> list[list[Found]]:
        """Search: the `best` hypotheses of each sentence; equals `engines.beam`."""
        return self.begin(memory).search(most, beams, best, length_penalty)
