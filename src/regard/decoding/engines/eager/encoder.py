"""Transformer encoder on a CPU as one function of its weights, without module calls.

For one short source those calls take longer than the arithmetic. Query, key and value of a layer are one matrix, and
residual sums are in place.
"""

import math
from collections.abc import Callable
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.decoding.engines.eager.linear import Buffers, prepare_linear
from regard.decoding.engines.eager.transformer import ResidualNorms, make_norm_function
from regard.decoding.engines.select import has_hooks
from regard.decoding.engines.version import ModelVersion
from regard.models.encoders.transformer import Layer, Transformer
from regard.models.seq2seq import Seq2Seq, attach_copies
from regard.tree import Tree

Rows = Float[Tensor, "rows size"]
ENGINES: "WeakKeyDictionary[nn.Module, tuple[Engine, ModelVersion]]" = WeakKeyDictionary()
"""CPU engine of each encoder, with the version of its weights; weakly keyed by the encoder."""


def encode(model: Any, source: Padded, compiled: bool = False) -> Tree:
    """Encode a source, equal to `model.encode`; faster for a trained Transformer without hooks on a CPU."""
    if not isinstance(model, Seq2Seq):
        return model.encode(source)
    if compiled and source.copies is None and is_plain(model, source):
        from regard.decoding.engines.cpp.encoder_cache import find_encoding as in_machine_code

        if (encoding := in_machine_code(model)) is not None:
            return encoding(model, source)
    engine = find_engine(model, source)
    return model.encode(source) if engine is None else model.decoder.remember(attach_copies(engine(source), source))


def is_plain(model: Seq2Seq, source: Padded) -> bool:
    """Return True if a model is in inference on a CPU, in float32, and none of its sources is empty."""
    where = source.data.device.type
    if where != "cpu" or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or model.training:
        return False
    if torch.get_default_dtype() != torch.float32 or source.documents is not None:  # buffers and masks use that
        return False
    return bool(source.data.numel()) and bool(source.keep.any(1).all())


def find_engine(model: Seq2Seq, source: Padded) -> "Engine | None":
    """CPU engine of a model's encoder for such a source, or None."""
    encoder = model.encoder
    if not is_plain(model, source):
        return None
    cached = ENGINES.get(encoder) if isinstance(encoder, nn.Module) else None
    if cached is None or not cached[1].unchanged:
        if covers(encoder) is not None or any(map(has_hooks, cast(nn.Module, encoder).modules())):
            return None
        whole = cast(Transformer, encoder)
        ENGINES[whole] = cached = Engine(whole), ModelVersion(whole)
    return cached[0]


def covers(encoder: Any) -> str | None:
    """Reason why the CPU engine does not cover this encoder, or None."""
    if type(encoder) is not Transformer:
        return f"needs the Transformer encoder, got {type(encoder).__name__}"
    if encoder.embedding.table.weight.dtype != torch.float32:
        return f"needs weights in float32, got {encoder.embedding.table.weight.dtype}"
    for layer in map(encoder.get_submodule, encoder.names):
        own = cast(Any, layer.self)
        if type(own.score) is not ScaledDot or type(own.normalise) is not Softmax or type(own.scope) is not Everywhere:
            return f"needs self-attention by scaled_dot and softmax, got {own.score}, {own.normalise}, {own.scope}"
        if own.key_heads != own.heads or own.how != "concat" or not isinstance(own.output, nn.Linear):
            return "needs as many heads of keys as of queries, joined by concat, and an output behind them"
        if not isinstance(cast(Layer, layer).feedforward[0], nn.Linear):
            return "needs feed-forward networks without gates"
    return None


class Engine:
    """CPU engine of a Transformer encoder."""

    def __init__(self, encoder: Transformer):
        self.embedding, self.widen = encoder.embedding, encoder.widen
        self.layers = [PreparedLayer(cast(Layer, encoder.get_submodule(name))) for name in encoder.names]
        self.norm = make_norm_function(encoder.norm)

    def __call__(self, source: Padded) -> Encoded:
        """Encode a batch without empty sources."""
        tokens, keep = source.data, source.keep
        hidden = ~keep
        mask = torch.zeros(keep.shape).masked_fill_(hidden, -math.inf)[:, None, None] if bool(hidden.any()) else None
        data, rooms = self.widen(self.embedding(tokens)).flatten(0, 1), Buffers()
        for layer in self.layers:
            data = layer(data, tokens.shape, mask, rooms)
        encoded = self.norm(data).view(*tokens.shape, -1)
        encoded = encoded if mask is None else encoded.masked_fill(hidden[..., None], 0.0)
        mean = encoded.sum(1, keepdim=True) / keep.sum(1)[:, None, None]
        return Encoded(encoded, keep, (mean,), tokens=tokens)


class PreparedLayer:
    """Prepared weights of one layer."""

    def __init__(self, layer: Layer):
        own = layer.self
        self.heads, self.scale = own.heads, cast(ScaledDot, own.score).factor(torch.empty(0, 0, 0, own.head))
        self.threefold = prepare_linear((own.query, own.key, own.value))
        self.own_output = prepare_linear(cast(nn.Linear, own.output))
        self.inner, self.outer = (prepare_linear(cast(nn.Linear, layer.feedforward[place])) for place in (0, 2))
        bend = layer.feedforward[1]
        self.bend: Callable[[Rows], Rows] = torch.relu_ if isinstance(bend, nn.ReLU) else bend
        self.around_self, self.around_feedforward = ResidualNorms(layer.around_self), ResidualNorms(layer.around_feedforward)

    def __call__(self, data: Rows, shape: torch.Size, mask: Float[Tensor, "batch 1 1 time"] | None, rooms: Buffers) -> Rows:
        """Run the layer; residual sums are in place."""
        norms = self.around_self
        sides = self.threefold.within(rooms, norms.norm_input(data)).view(*shape, 3, self.heads, -1)
        query, keys, values = sides.permute(2, 0, 3, 1, 4)  # batch heads time dim
        encoded = F.scaled_dot_product_attention(query, keys, values, mask, scale=self.scale)
        data = norms.norm_output(self.own_output.onto(data, encoded.transpose(1, 2).reshape(data.shape[0], -1)))
        norms = self.around_feedforward
        inner = self.bend(self.inner.within(rooms, norms.norm_input(data)))
        return norms.norm_output(self.outer.onto(data, inner))
