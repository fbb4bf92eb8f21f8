"""Transformer encoder and the keys and values of cross-attention in C++, in two calls; equals `engines/eager/encoder.py`."""

import ctypes
from typing import Any, cast

import torch

from regard.attention.kinds import is_builtin
from regard.attention.multihead import MultiHead
from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Encoded, Memory
from regard.data.batch import Padded
from regard.decoding.engines.cpp.build import load_library
from regard.decoding.engines.cpp.embedding import NativeEmbedding
from regard.decoding.engines.cpp.matrices import build_linear, make_absent_matrix
from regard.decoding.engines.cpp.ragged import remove_padding
from regard.decoding.engines.cpp.transformer import build_model, check_plain_stack
from regard.decoding.engines.cpp.transformer import covers as steps
from regard.decoding.engines.eager import encoder as usual
from regard.models.decoders import DecoderMemory
from regard.models.decoders.transformer import Transformer as Decoder
from regard.models.encoders.transformer import Transformer

STORE = 0
"""Epilogue code of a product, as in product.hpp."""


def covers(encoder: Any) -> str | None:
    """Reason why the C++ engine does not cover this encoder, or None."""
    return usual.covers(encoder) or check_plain_stack(encoder)


class Engine:
    """C++ engine of a Transformer encoder; unless `summed`, it leaves out the final state, which no attention needs."""

    def __init__(self, encoder: Transformer, summed: bool = True):
        self.code, spoken, self.summed = load_library(), NativeEmbedding(encoder.embedding), summed
        self.model = build_model(encoder, "float32", spoken.record, make_absent_matrix(), make_absent_matrix())
        self.spoken = spoken.within(self.model.words)

    def __call__(self, source: Padded) -> Encoded:
        """Encode a batch without empty sources; padding is not computed."""
        tokens, keep = source.data, source.keep
        self.spoken.know(tokens.shape[1])
        batch = remove_padding(source)
        data = torch.empty(len(batch.tokens), self.model.size)
        self.code.regard_encode(ctypes.byref(self.model), *batch.pointers, data.data_ptr(), torch.get_num_threads())
        encoded = batch.out(data, keep)
        final = (encoded.sum(1, keepdim=True) / batch.counts[:, None, None],) if self.summed else ()
        return Encoded(encoded, keep, final, tokens=tokens)


class MemoryProjection:
    """Decoder memory with the keys and values of all layers in one product; equals `decoder.remember`."""

    def __init__(self, decoder: Decoder):
        crosses = [cast(MultiHead, layer.cross) for layer in decoder.layers]
        sides = [side for cross in crosses for side in (cross.key, cross.value)]
        self.code, self.matrix = load_library(), build_linear(sides)
        self.names = [f"decoder.{name}.cross" for name in decoder.names]
        self.shape = 2 * len(crosses), crosses[0].key_heads, crosses[0].head

    def __call__(self, encoded: Encoded) -> DecoderMemory:
        """Memory of each layer; all are views of one tensor."""
        data = encoded.data.contiguous()
        batch, time, _ = data.shape
        outputs = torch.empty(batch, time, *self.shape)
        pointers = data.data_ptr(), batch * time, ctypes.byref(self.matrix), outputs.data_ptr()
        self.code.regard_product(*pointers, STORE, torch.get_num_threads())
        sides = outputs.permute(2, 0, 3, 1, 4).unbind(0)  # batch heads time head
        memories = map(Memory, sides[::2], sides[1::2], [encoded.keep] * len(self.names))
        return DecoderMemory(dict(zip(self.names, memories, strict=True)))


def build_memory_projection(decoder: Any) -> "MemoryProjection | None":
    """Build the fused memory of a decoder; None unless each cross-attention needs just a key and a value projection."""
    if steps(decoder) is not None:
        return None
    crosses = [layer.cross for layer in decoder.layers]
    if not all(isinstance(cross, MultiHead) and is_builtin(cross) for cross in crosses):
        return None
    if not all(type(cross.score) in (Dot, ScaledDot) for cross in crosses):
        return None
    return MemoryProjection(decoder) if len({(cross.key_heads, cross.head) for cross in crosses}) == 1 else None
