"""LSTM encoder in C++, in one call."""

import ctypes
from typing import Any, cast

import torch
from torch import nn

from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.decoding.engines.cpp.build import load_library
from regard.decoding.engines.cpp.embedding import EmbeddingTable, NativeEmbedding
from regard.decoding.engines.cpp.embedding import covers as embeds
from regard.decoding.engines.cpp.matrices import Matrix, OwningStructure, build_matrix
from regard.decoding.engines.cpp.ragged import remove_padding
from regard.models.encoders.recurrent import Recurrent


class Direction(OwningStructure):
    """One direction of one LSTM layer as a C struct: input and recurrent matrices."""

    _fields_ = (("entering", Matrix), ("staying", Matrix))


class LSTMEncoder(OwningStructure):
    """LSTM encoder as a C struct."""

    _fields_ = (
        ("ways", ctypes.POINTER(Direction)),
        ("layers", ctypes.c_int64),
        ("directions", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("words", EmbeddingTable),
    )


def covers(encoder: Any) -> str | None:
    """Reason why the C++ engine does not cover this encoder, or None."""
    if type(encoder) is not Recurrent:
        return f"needs the recurrent encoder, got {type(encoder).__name__}"
    if not all(isinstance(layer, nn.LSTM) for layer in encoder.layers):
        return f"needs LSTM cells, got {type(encoder.layers[0]).__name__}"
    if encoder.reverse:
        return "needs a source that is not reversed"
    if encoder.embedding.table.weight.dtype != torch.float32:
        return f"needs weights in float32, got {encoder.embedding.table.weight.dtype}"
    return embeds(encoder.embedding)


def build_direction(layer: nn.Module, back: bool) -> Direction:
    """Build the C struct of one direction of a layer."""
    names = (f"{name}_l0{'_reverse' * back}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    W, U, bias, hidden_bias = (layer.get_parameter(name).detach() for name in names)
    sides = build_matrix(W, bias + hidden_bias), build_matrix(U, torch.zeros_like(bias))
    return Direction(*sides, references=sides)


class Engine:
    """C++ engine of an LSTM encoder."""

    def __init__(self, encoder: Recurrent):
        self.code, spoken = load_library(), NativeEmbedding(encoder.embedding)
        layers = [cast(nn.LSTM, layer) for layer in encoder.layers]
        both = 1 + layers[0].bidirectional
        ways = [build_direction(layer, back == 1) for layer in layers for back in range(both)]
        table = (Direction * len(ways))(*ways)
        self.reader = LSTMEncoder(table, len(layers), both, layers[0].hidden_size, spoken.record, references=(ways, table))
        self.spoken = spoken.within(self.reader.words)
        self.final, self.size = (len(layers), encoder.size), encoder.size

    def __call__(self, source: Padded) -> Encoded:
        """Encode a batch without empty sources; padding is not computed."""
        tokens, keep = source.data, source.keep
        self.spoken.know(tokens.shape[1])
        batch = remove_padding(source)
        data, final = torch.empty(len(batch.tokens), self.size), tuple(torch.empty(len(tokens), *self.final) for _ in "hc")
        outputs = data.data_ptr(), *(tensor.data_ptr() for tensor in final)
        self.code.regard_read(ctypes.byref(self.reader), *batch.pointers, *outputs, torch.get_num_threads())
        return Encoded(batch.out(data, keep), keep, final, tokens=tokens)
