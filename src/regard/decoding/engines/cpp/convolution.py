"""The convolutional decoder, a whole step in one call: what `decoding/engines/cpu/convolution.py` finds."""

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
    """One layer: its convolution at one place is a matrix over the last inputs side by side, the oldest first."""

    _fields_ = (
        ("convolution", Matrix),
        ("query", Matrix),
        ("fit", Matrix),
        ("cross", Look),
        ("context", ctypes.c_int64),
    )


class Model(Kept):
    """Layers, and what stands before and behind them."""

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
    """None where the compiled code computes what this decoder does, else the reason that it does not."""
    if reason := convolution.covers(decoder):
        return reason
    reasons = [attention.covers(layer.cross) for layer in decoder.layers]
    return next(filter(None, reasons), None) or embeds(decoder.embedding)


def maybe(layer: nn.Module, precision: str) -> Matrix:
    """A linear layer, or nothing where there is none."""
    return affine([layer], precision) if isinstance(layer, nn.Linear) else nothing()


def layer_of(made: decoders.Layer, precision: str) -> Layer:
    """One layer."""
    assert made.cross is not None
    parts = (
        matrix(*convolution.at_one_place(made.gated), precision),
        affine([made.query], precision),
        maybe(made.fit, precision),
        attention.look(made.cross, precision, made.query.out_features),
    )
    return Layer(*parts, made.cross.size, held=parts)


class Engine:
    """The decoder's matrices, ready for steps."""

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
        """The decoder before its first token."""
        model, kept = self.model, list(memory.memories.values())
        given = [attention.source(cross, each) for cross, each in zip(self.crosses, kept, strict=True)]
        table, keep = (Source * len(given))(*given), kept[0].keep
        keep = None if keep is None else keep.contiguous()
        size = len(kept[0].values), kept[0].values.shape[2]
        handle = self.code.regard_convolution(ctypes.byref(model), table, pointer(keep), *size)
        return Stepping(self.code, handle, self.spoken, model.output.out, (self, given, table, keep))

    def search(self, memory: Remembered, most: Numbers, beams: int, best: int, length_penalty: float) -> list[list[Found]]:
        """The `best` targets of each sentence, best first: what `native.beam` finds."""
        return self.begin(memory).search(most, beams, best, length_penalty)
