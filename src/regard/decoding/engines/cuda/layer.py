"""Transformer decoder layer for one step: a function of its weights and of tensors at fixed addresses."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Memory
from regard.decoding.engines.cuda.add_norm import add_norm
from regard.decoding.engines.cuda.matrices import LayerWeights
from regard.decoding.engines.cuda.types import Counter

Rows = Float[Tensor, "rows size"]


def run_layer(
    layer: LayerWeights,
    data: tuple[Rows, Rows],
    cache: Float[Tensor, "sentences room width sides"],
    source: Memory,
    masks: tuple[Float[Tensor, "sentences width places"], Float[Tensor, "sentences 1 keys"]],
    place: Counter,
) -> tuple[Rows, Rows]:
    """Run a layer: residual stream and normalised input, in and out.

    Each sum is fused with the norm that follows it, so that both are one pass over the data.
    """
    residual, entered = data
    own, source_mask = masks
    residual, entered = add_residual(layer, 0, residual, attend_past(layer, entered, cache, own, place))
    residual, entered = add_residual(layer, 1, residual, attend_source(layer, entered, source, source_mask))
    return add_residual(layer, 2, residual, feed_forward(layer, entered))


def add_residual(layer: LayerWeights, number: int, residual: Rows, output: Rows) -> tuple[Rows, Rows]:
    """Residual sum x + f(x), and its norm; in post-norm both outputs are the norm."""
    norm = layer.norms[number]
    total, normed = add_norm(residual, output, norm.weight, norm.bias, norm.eps)
    return (total, normed) if layer.first else (normed, normed)


def attend_past(
    layer: LayerWeights,
    entered: Rows,
    cache: Float[Tensor, "sentences room width sides"],
    mask: Float[Tensor, "sentences width places"],
    place: Int[Tensor, " 1"],
) -> Rows:
    """Self-attention: append the new keys and values, and attend to each row's past."""
    sentences, _, width, _ = cache.shape
    sides = F.linear(entered, *layer.threefold).view(sentences, 1, width, 3 * layer.size)
    cache.index_copy_(1, place, sides[..., layer.size :])
    query = sides[:, 0, :, : layer.size].view(sentences, width, layer.heads, -1).transpose(1, 2)
    keys, values = cache.view(sentences, -1, 2, layer.heads, layer.size // layer.heads).permute(2, 0, 3, 1, 4)
    output = attend(query, keys, values, mask, layer.scale)
    return F.linear(output, *layer.own_output)


def attend_source(layer: LayerWeights, entered: Rows, source: Memory, mask: Float[Tensor, "sentences 1 keys"]) -> Rows:
    """Cross-attention of each row; the rows of a sentence share its source."""
    projected = entered if layer.asks is None else F.linear(entered, *layer.asks)
    query = projected.view(len(source.keys), -1, layer.cross_heads, source.keys.shape[3]).transpose(1, 2)
    output = attend(query, source.keys, source.values, mask, layer.cross_scale)
    return output if layer.cross_output is None else F.linear(output, *layer.cross_output)


def attend(
    query: Float[Tensor, "sentences heads width dim"],
    keys: Float[Tensor, "sentences heads keys dim"],
    values: Float[Tensor, "sentences heads keys dim"],
    mask: Float[Tensor, "sentences _ keys"],
    scale: float,
) -> Rows:
    """Attention softmax(q kᵀ scale + mask) v, heads concatenated: one row for each row of each sentence."""
    spread = mask[:, None].expand(*query.shape[:3], keys.shape[2])
    output = F.scaled_dot_product_attention(query, keys, values, attn_mask=spread, scale=scale)
    return output.transpose(1, 2).flatten(2).flatten(0, 1)


def feed_forward(layer: LayerWeights, entered: Rows) -> Rows:
    """Feed-forward network W₂ f(W₁ x); ReLU and bias are fused into the product."""
    matrix, bias = layer.inner
    bend: Any = layer.bend
    if isinstance(bend, nn.ReLU) and bias is not None and not torch.compiler.is_compiling():
        return F.linear(torch._addmm_activation(bias, entered, matrix.mT), *layer.outer)
    return F.linear(bend(F.linear(entered, matrix, bias)), *layer.outer)
