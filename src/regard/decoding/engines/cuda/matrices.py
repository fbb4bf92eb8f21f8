"""Weights of a Transformer decoder in one precision, as the steps of `transformer.py` use them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.multihead import MultiHead
from regard.attention.score.scaled_dot import ScaledDot
from regard.models.decoders.transformer import Layer, Transformer

Weights = tuple[Float[Tensor, "_ _"], Float[Tensor, " _"] | None]


class Norm(NamedTuple):
    """Arguments of a layer norm."""

    shape: tuple[int, ...]
    weight: Float[Tensor, " size"]
    bias: Float[Tensor, " size"]
    eps: float


class LayerWeights(NamedTuple):
    """Weights of one layer, with a fused QKV projection.

    `norms` follow its three sums: in pre-norm they are those of the next sublayer.
    """

    threefold: Weights
    own_output: Weights
    asks: Weights | None
    cross_output: Weights | None
    inner: Weights
    outer: Weights
    bend: nn.Module
    norms: tuple[Norm, ...]
    first: bool
    """True for pre-norm."""
    heads: int
    size: int
    scale: float
    cross_heads: int
    cross_scale: float


def cast_to(dtype: torch.dtype, weight: Tensor) -> Tensor:
    """Cast a weight to a precision; unchanged if it has it already."""
    return weight.detach().to(dtype)


def cast_linear(layer: nn.Module, dtype: torch.dtype) -> Weights | None:
    """Weight and bias of a linear layer; None for an identity."""
    if not isinstance(layer, nn.Linear):
        return None
    return cast_to(dtype, layer.weight), None if layer.bias is None else cast_to(dtype, layer.bias)


def cast_norm(layer: nn.Module, dtype: torch.dtype) -> Norm | None:
    """Arguments of a layer norm; None for an identity."""
    if not isinstance(layer, nn.LayerNorm):
        return None
    return Norm(tuple(layer.normalized_shape), cast_to(dtype, layer.weight), cast_to(dtype, layer.bias), layer.eps)


def collect_weights(decoder: Transformer, dtype: torch.dtype) -> list[LayerWeights]:
    """Weights of every layer, bottom to top."""
    layers = decoder.layers
    entries = [layer.around_self.norm for layer in layers[1:]] + [decoder.norm]
    return [collect_layer_weights(layer, after, dtype) for layer, after in zip(layers, entries, strict=True)]


def collect_layer_weights(layer: Layer, after: nn.Module, dtype: torch.dtype) -> LayerWeights:
    """Weights of one layer; `after` is the norm of the sublayer that follows it."""
    own, cross, first = layer.self, cast(MultiHead, layer.cross), layer.around_self.first
    arounds = (layer.around_self, layer.around_cross, layer.around_feedforward)
    norms = [around.norm for around in arounds]
    inner, outer = (cast(Weights, cast_linear(layer.feedforward[place], dtype)) for place in (0, 2))
    return LayerWeights(
        threefold=concatenate([cast(Weights, cast_linear(layer, dtype)) for layer in (own.query, own.key, own.value)]),
        own_output=cast(Weights, cast_linear(own.output, dtype)),
        asks=cast_linear(cross.query, dtype),
        cross_output=cast_linear(cross.output, dtype),
        inner=inner,
        outer=outer,
        bend=layer.feedforward[1],
        norms=tuple(cast(Norm, cast_norm(norm, dtype)) for norm in ([*norms[1:], after] if first else norms)),
        first=first,
        heads=own.heads,
        size=own.heads * own.head,
        scale=find_scale(own),
        cross_heads=cross.heads,
        cross_scale=find_scale(cross),
    )


def concatenate(several: Sequence[Weights]) -> Weights:
    """Concatenate linear layers with the same input."""
    biases = [torch.zeros_like(matrix[:, 0]) if bias is None else bias for matrix, bias in several]
    return torch.cat([matrix for matrix, _ in several]), torch.cat(biases)


def find_scale(attention: MultiHead) -> float:
    """Scale of an attention's scores."""
    score: Any = attention.score
    return cast(ScaledDot, score).factor(torch.empty(0, 0, 0, attention.head))
