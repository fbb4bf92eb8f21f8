"""LSTM decoder in C++, one call a step; equals `decoding/engines/eager/recurrent.py`."""

import ctypes
from typing import Any, cast

import torch
from torch import nn

from regard.decoding.engines.cpp import attention
from regard.decoding.engines.cpp.attention import CrossAttention
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
from regard.decoding.engines.eager import recurrent
from regard.decoding.engines.types import Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.models.decoders import DecoderMemory
from regard.models.decoders.recurrent import CROSS_NAME, Recurrent
from regard.models.output_heads.projection import Projection


class Network(OwningStructure):
    """LSTM decoder as a C struct: cells, cross-attention, readout and output."""

    _fields_ = (
        ("cells", ctypes.POINTER(Matrix)),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("words", EmbeddingTable),
        ("before", ctypes.c_int64),
        ("feeds", ctypes.c_int64),
        ("cross", CrossAttention),
        ("context", ctypes.c_int64),
        ("readout", Matrix),
        ("fit", Matrix),
        ("output", Matrix),
    )


def covers(decoder: Any) -> str | None:
    """Reason why the C++ engine does not cover this decoder, or None."""
    if reason := recurrent.covers(decoder):
        return reason
    if not all(isinstance(layer, nn.LSTM) for layer in decoder.layers):
        return f"needs LSTM cells, got {type(decoder.layers[0]).__name__}"
    return attention.covers(decoder.cross) or embeds(decoder.embedding)


def build_cell(layer: nn.Module, precision: str) -> Matrix:
    """Build one layer of cells: input and recurrent weights as one matrix."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    W, U, bias, hidden_bias = (layer.get_parameter(name).detach() for name in names)
    return build_matrix(torch.cat((W, U), dim=1), bias + hidden_bias, precision)


class Engine:
    """C++ engine of an LSTM decoder."""

    def __init__(self, decoder: Recurrent, precision: str = "float32"):
        self.code, spoken, self.cross = load_library(), NativeEmbedding(decoder.embedding), cast(Any, decoder.cross)
        cells = [build_cell(layer, precision) for layer in decoder.layers]
        table, cross = (Matrix * len(cells))(*cells), attention.build_attention(self.cross, precision, decoder.size)
        output = cast(Projection, decoder.output)
        parts = (
            build_linear([decoder.readout], precision),
            build_linear([output.fit], precision) if isinstance(output.fit, nn.Linear) else make_absent_matrix(),
            build_matrix(output.matrix(decoder.embedding.table.weight).detach(), output.bias.detach(), precision),
        )
        how = decoder.before, decoder.feeds, cross, self.cross.size
        references = cells, table, cross, spoken, parts
        self.network = Network(table, len(cells), decoder.size, spoken.record, *how, *parts, references=references)
        self.spoken = spoken.within(self.network.words)

    def begin(self, memory: DecoderMemory) -> NativeSteps:
        """Initial state of a batch, before the first token."""
        network, cross_memory = self.network, memory.memories[CROSS_NAME]
        source = attention.build_source(self.cross, cross_memory)
        keep = None if cross_memory.keep is None else cross_memory.keep.contiguous()
        states = [tensor.transpose(0, 1).contiguous() for tensor in memory.initial]  # layers sources size
        size, places = (len(cross_memory.values), cross_memory.values.shape[2]), [state.data_ptr() for state in states]
        pointers = ctypes.byref(network), ctypes.byref(source), find_address(keep)
        handle = self.code.regard_recurrent(*pointers, *size, *places)
        return NativeSteps(self.code, handle, self.spoken, network.output.out, (self, source, keep))

    def search(
        self, memory: DecoderMemory, most: Numbers, beams: int, best: int, length_penalty: float
    ) -> list[list[Hypothesis]]:
        """Search: the `best` hypotheses of each sentence; equals `engines.eager.beam`."""
        return self.begin(memory).search(most, beams, best, length_penalty)
