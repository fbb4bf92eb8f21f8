"""Cache of C++ encoders, valid while the weights of their models stay unchanged."""

from typing import Any, cast
from weakref import WeakKeyDictionary

from torch import nn

from regard.data.batch import Padded
from regard.decoding.engines.cpp import encoder, lstm_encoder
from regard.decoding.engines.cpp.encoder import build_memory_projection
from regard.decoding.engines.cpp.select import CACHED_ENGINES as ENGINES
from regard.decoding.engines.cpp.select import is_usable, mark_memory
from regard.decoding.engines.version import ModelVersion
from regard.models.seq2seq import Seq2Seq
from regard.tree import Tree

KINDS = (encoder, lstm_encoder)


class Encoding:
    """C++ encoder and decoder memory; equals `model.encode` for sources of which none is empty."""

    def __init__(self, model: Seq2Seq, kind: Any):
        self.remember, self.watched = build_memory_projection(model.decoder), ModelVersion(model)
        alone = kind is encoder and self.remember is not None  # the final state is not needed
        self.read = kind.Engine(model.encoder, summed=False) if alone else kind.Engine(model.encoder)

    def __call__(self, model: Seq2Seq, source: Padded) -> Tree:
        encoded = self.read(source)
        memory = model.decoder.remember(encoded) if self.remember is None else self.remember(encoded)
        mark_memory(cast(nn.Module, model.decoder), memory)
        return memory


ENCODINGS: WeakKeyDictionary[nn.Module, Encoding] = WeakKeyDictionary()
"""C++ encoder of each model; weakly keyed by the model."""


def find_encoding(model: Seq2Seq) -> Encoding | None:
    """C++ encoder of a model without hooks; None if it is not covered."""
    encoding = ENCODINGS.get(model)
    if encoding is None or not encoding.watched.unchanged:
        kind = next((kind for kind in KINDS if kind.covers(model.encoder) is None), None)
        if kind is None or not is_usable("float32"):
            return None
        ENGINES.pop(cast(nn.Module, model.decoder), None)  # which may hold old weights
        ENCODINGS[model] = encoding = Encoding(model, kind)
    return encoding if encoding.watched.unchanged else None
