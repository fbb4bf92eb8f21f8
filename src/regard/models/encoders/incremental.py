"""Incremental encoding of a source that is still arriving: equals `encoder(source)`, each token encoded once."""

from typing import Any, cast

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.scope import And, Or, Scope
from regard.attention.scope.causal import Causal
from regard.attention.types import Encoded, Memory, State
from regard.models.encoders.recurrent import Recurrent
from regard.models.encoders.transformer import Layer, Transformer
from regard.models.layers.cells import run_cells, stack_states


def covers(encoder: Any) -> str | None:
    """Reason why later tokens could change what this encoder computed (it needs the whole source), or None."""
    if isinstance(encoder, Recurrent):
        if encoder.reverse:
            return "its encoder reads from the end (model.reverse_source=false reads from the beginning)"
        if any(isinstance(layer, nn.RNNBase) and layer.bidirectional for layer in encoder.layers):
            return "its encoder reads from both ends (model.bidirectional=false reads from the beginning alone)"
        return None
    if isinstance(encoder, Transformer):
        if all(is_causal(layer.self.scope) for layer in _layers(encoder)):
            return None
        return "every token of its encoder looks at all others (model.self_attention=causal looks back alone)"
    return f"its encoder, {type(encoder).__name__}, sees what comes after a token too (a recurrent one need not)"


def is_causal(scope: Scope) -> bool:
    """Return True if a scope hides all later keys."""
    if isinstance(scope, And):
        return is_causal(scope.left) or is_causal(scope.right)
    if isinstance(scope, Or):
        return is_causal(scope.left) and is_causal(scope.right)
    return isinstance(scope, Causal)


def encode_incrementally(encoder: Any, tokens: Int[Tensor, "batch time"], state: State = ()) -> tuple[Encoded, State]:
    """Encode further tokens from a state, () at the beginning; returns them encoded, and the new state.

    `final` is that of a source that ends here. A Transformer's would be the mean over all tokens, which streaming does not
    have; here it is the last one.
    """
    outputs = (
        _encode_recurrent(encoder, tokens, state)
        if isinstance(encoder, Recurrent)
        else _encode_transformer(encoder, tokens, state)
    )
    data, final, state = outputs
    return Encoded(data, torch.ones_like(tokens, dtype=torch.bool), final, tokens=tokens), state


def _encode_recurrent(encoder: Recurrent, tokens: Tensor, state: State) -> tuple[Tensor, tuple[Tensor, ...], State]:
    """Recurrent encoding: each layer goes on from its last state."""
    position, begin = state or (0, [None] * len(encoder.layers))
    data, lasts = encoder.embedding(tokens, position), []
    for layer, before in zip(encoder.layers, begin, strict=True):
        data, last = run_cells(layer, data, before)
        lasts.append(last)
    states = [last if isinstance(last, tuple) else (last,) for last in lasts]
    final = stack_states([tuple(one.transpose(0, 1).flatten(1) for one in state) for state in states])
    return data, final, (position + tokens.shape[1], lasts)


def _encode_transformer(encoder: Transformer, tokens: Tensor, state: State) -> tuple[Tensor, tuple[Tensor, ...], State]:
    """Transformer encoding: each layer keeps a KV cache, as a decoder's does."""
    before: tuple[Memory | None, ...] = state or (None,) * len(encoder.names)
    data = encoder.widen(encoder.embedding(tokens, 0 if before[0] is None else before[0].keys.shape[2]))
    caches = []
    for layer, cache in zip(_layers(encoder), before, strict=True):
        entered = layer.around_self.normalise_input(data)
        caches.append(layer.self.extend(cache, entered))
        data = layer.around_self.add(data, layer.self(entered, caches[-1]).context)
        data = layer.around_feedforward.add(data, layer.feedforward(layer.around_feedforward.normalise_input(data)))
    data = encoder.norm(data)
    return data, (data[:, -1:],), tuple(caches)


def _layers(encoder: Transformer) -> list[Layer]:
    return [cast(Layer, encoder.get_submodule(name)) for name in encoder.names]
