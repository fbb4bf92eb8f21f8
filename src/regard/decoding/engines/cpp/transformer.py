"""Transformer decoder in C++, one call a step; equals `decoding/engines/eager/transformer.py`."""

import ctypes
from typing import Any, cast

import torch
from torch import nn

from regard.attention.score.scaled_dot import ScaledDot
from regard.decoding.engines.cpp import attention
from regard.decoding.engines.cpp.attention import CrossAttention, Source
from regard.decoding.engines.cpp.build import load_library
from regard.decoding.engines.cpp.embedding import EmbeddingTable, NativeEmbedding
from regard.decoding.engines.cpp.embedding import covers as embeds
from regard.decoding.engines.cpp.matrices import (
    Matrix,
    Norm,
    OwningStructure,
    build_linear,
    build_matrix,
    build_norm,
    find_address,
    make_absent_matrix,
)
from regard.decoding.engines.cpp.search import NativeSteps
from regard.decoding.engines.eager import transformer
from regard.decoding.engines.types import Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.models.decoders import DecoderMemory
from regard.models.decoders.transformer import Transformer
from regard.models.encoders.transformer import Transformer as Encoder
from regard.models.output_heads.projection import Projection


class Layer(OwningStructure):
    """Layer as a C struct, with a fused QKV projection."""

    _fields_ = (
        ("threefold", Matrix),
        ("own_output", Matrix),
        ("inner", Matrix),
        ("outer", Matrix),
        ("around_self", Norm),
        ("around_cross", Norm),
        ("around_feedforward", Norm),
        ("cross", CrossAttention),
    )


class Model(OwningStructure):
    """Transformer as a C struct."""

    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("head", ctypes.c_int64),
        ("inner", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("first", ctypes.c_int64),
        ("last", Norm),
        ("words", EmbeddingTable),
        ("fit", Matrix),
        ("output", Matrix),
    )


def covers(decoder: Any) -> str | None:
    """Reason why the C++ engine does not cover this decoder, or None."""
    if reason := transformer.covers(decoder):
        return reason
    if reason := check_plain_stack(decoder):
        return reason
    for layer in decoder.layers:
        if reason := attention.covers(layer.cross):
            return reason
        if isinstance(layer.fit, nn.Linear) == isinstance(layer.cross.output, nn.Linear):
            return "needs attentions to the source with one projection of what they find"
    return None


def check_plain_stack(stack: Transformer | Encoder) -> str | None:
    """Reason why an encoder or decoder is not a plain stack (embedding of the layers' size, ReLU, layer norms), or None."""
    if reason := embeds(stack.embedding):
        return reason
    if not isinstance(stack.widen, nn.Identity):
        return "needs an embedding as wide as its layers"
    for layer in map(stack.get_submodule, stack.names):
        norms = [module for name, module in layer.named_children() if name.startswith("around_")]
        kinds = {type(cast(Any, norm).norm) for norm in norms} | {type(stack.norm)}
        if not kinds <= {nn.LayerNorm, nn.Identity}:
            return "needs layer norms"
        if not isinstance(cast(Any, layer).feedforward[1], nn.ReLU):
            return f"needs relu, got {cast(Any, layer).feedforward[1]}"
    return None


def build_layer(layer: Any, precision: str, size: int) -> Layer:
    """Build the C struct of one layer of an encoder or a decoder."""
    own, cross = layer.self, getattr(layer, "cross", None)
    parts = (
        build_linear((own.query, own.key, own.value), precision),
        *(build_linear([linear], precision) for linear in (own.output, layer.feedforward[0], layer.feedforward[2])),
        build_norm(layer.around_self.norm),
        build_norm(nn.Identity() if cross is None else layer.around_cross.norm),
        build_norm(layer.around_feedforward.norm),
        CrossAttention(make_absent_matrix(), make_absent_matrix(), 0, 0, 0, 0.0, None)
        if cross is None
        else attention.build_attention(cross, precision, size, layer.fit),
    )
    return Layer(*parts, references=parts)


def build_model(stack: Transformer | Encoder, precision: str, spoken: EmbeddingTable, fit: Matrix, output: Matrix) -> Model:
    """Build the C struct of an encoder or a decoder."""
    modules: list[Any] = [stack.get_submodule(name) for name in stack.names]
    layers = [build_layer(layer, precision, stack.size) for layer in modules]
    own, inner = modules[0].self, layers[0].inner.out
    scale = cast(ScaledDot, own.score).factor(torch.empty(0, 0, 0, own.head))
    table, last = (Layer * len(layers))(*layers), build_norm(stack.norm)
    sizes = len(layers), stack.size, own.heads, own.head, inner, scale, modules[0].around_self.first
    return Model(table, *sizes, last, spoken, fit, output, references=(layers, table, last, fit, output))


class Engine:
    """C++ engine of a Transformer decoder."""

    def __init__(self, decoder: Transformer, precision: str = "float32"):
        self.code, spoken = load_library(), NativeEmbedding(decoder.embedding)
        self.crosses = [cast(Any, layer.cross) for layer in decoder.layers]
        output = cast(Projection, decoder.output)
        fit = build_linear([output.fit], precision) if isinstance(output.fit, nn.Linear) else make_absent_matrix()
        table = output.matrix(decoder.embedding.table.weight).detach()
        self.model = build_model(
            decoder, precision, spoken.record, fit, build_matrix(table, output.bias.detach(), precision)
        )
        self.spoken = spoken.within(self.model.words)

    def begin(self, memory: DecoderMemory) -> NativeSteps:
        """Initial state of a batch, before the first token."""
        model, memories = self.model, list(memory.memories.values())
        sources = [attention.build_source(cross, memory) for cross, memory in zip(self.crosses, memories, strict=True)]
        table, keep = (Source * len(sources))(*sources), memories[0].keep
        keep = None if keep is None else keep.contiguous()
        size = len(memories[0].values), memories[0].values.shape[2]
        handle = self.code.regard_transformer(ctypes.byref(model), table, find_address(keep), *size)
        return NativeSteps(self.code, handle, self.spoken, model.output.out, (self, sources, table, keep))

    def search(
        self, memory: DecoderMemory, most: Numbers, beams: int, best: int, length_penalty: float
    ) -> list[list[Hypothesis]]:
        """Search: the `best` hypotheses of each sentence; equals `engines.eager.beam`."""
        return self.begin(memory).search(most, beams, best, length_penalty)
