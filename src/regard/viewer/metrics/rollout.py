"""Attention rollout: how much of each input token reaches a token of a layer, through all the layers in between.

Raw weights of a higher layer point at positions whose content is already a mixture. Rollout follows the mixing:

    Ã_1 = A_1,    Ã_l = A_l Ã_(l-1),    A_l = (W_l + I) / 2,    W_l the mean of the heads of layer l

Abnar and Zuidema 2020, section 3, "Attention rollout", https://arxiv.org/abs/2005.00928; the I stands for the residual
connection. The paper has one stack. Here an attention from one axis over another (cross attention) is W Ã: its queries and
keys are different places, so it has no residual part, and Ã is the rollout of the whole stack over its keys, the encoder.
Layers of a decoder below a cross attention are not followed: they mix what was written, not the input. A decoder over what
it has written is no cross attention: the query that writes token t stands where token t - 1 was read.
"""

from collections.abc import Sequence

import numpy as np

from regard.data.axis import Array
from regard.viewer.metrics.curves import shares
from regard.viewer.trace import AttentionMap, Example, Trace

GRADIENT = " × gradient"
"""End of the name of the weights of an attention times their gradients. Their rollout takes the positive part, after Chefer,
Gur and Wolf 2021, section 3, https://arxiv.org/abs/2103.15679
"""
WRITTEN = ("target", "written")
"""The axes of a decoder over what it has written: two names for the same places, one token apart."""


def rollout(layers: Sequence[Array]) -> Array:
    """The product of the layers, lowest first: each (heads, queries, keys), square but for the last, which may cross."""
    return product([mixing(layer) for layer in layers])


def product(mixed: Sequence[Array]) -> Array:
    """The topmost matrix times all below it."""
    if not mixed:
        raise ValueError("rollout needs at least one layer, got none")
    rolled = mixed[0]
    for layer in mixed[1:]:
        if layer.shape[1] != rolled.shape[0]:
            raise ValueError(f"a layer of {layer.shape[1]} keys cannot stand on one of {rolled.shape[0]} queries")
        rolled = layer @ rolled
    return rolled


def mixing(weights: Array, residual: bool = True) -> Array:
    """(W + I) / 2 with W the mean of the heads, rows summing to one; W alone without a residual connection.

    A query that sees nothing keeps itself whole.
    """
    if weights.ndim != 3:
        raise ValueError(f"a layer is (heads, queries, keys), got the shape {weights.shape}")
    W = shares(weights.mean(0, dtype=np.float64))
    if not residual or W.shape[0] != W.shape[1]:
        return W
    return shares(W + np.eye(len(W)))


def stack(example: Example, attention_map: AttentionMap) -> list[Array]:
    """The mixing matrices that lie between the inputs and what a look's queries read, lowest first.

    For self attention these are the layers between its own axes up to itself; for cross attention every layer over its keys,
    and last the cross attention.
    """
    own = attention_map.query == attention_map.key or (attention_map.query, attention_map.key) == WRITTEN
    axes = (attention_map.query, attention_map.key) if own else (attention_map.key, attention_map.key)
    layers = [
        attention
        for attention in example.attentions
        if (attention.query, attention.key) == axes and is_gradient(attention) == is_gradient(attention_map)
    ]
    below = layers[: layers.index(attention_map)] if own else layers
    return [*(mixing(_weights(layer)) for layer in below), mixing(_weights(attention_map), residual=own)]


def last(trace: Trace, group: tuple[str, str] | None = None, example: int = 0) -> AttentionMap:
    """The highest look of a group, (query axis, key axis); without one, what the trace itself takes first."""
    if group is None:
        return trace.attention(None, example)
    attentions = trace.example(example).attentions
    for attention_map in reversed(attentions):
        if (attention_map.query, attention_map.key) == tuple(group):
            return attention_map
    groups = sorted({(attention_map.query, attention_map.key) for attention_map in attentions})
    raise KeyError(f"no attention goes from {group[0]!r} over {group[1]!r}; there are {', '.join(map(str, groups))}")


def traced(example: Example, attention_map: AttentionMap) -> Array:
    """Rollout from the inputs up to a look of an example, (queries, keys)."""
    return product(stack(example, attention_map))


def of(trace: Trace, group: tuple[str, str] | None = None, example: int = 0) -> Array:
    """Rollout from the inputs up to the highest attention of a group, (queries, keys)."""
    return traced(trace.example(example), last(trace, group, example))


def is_gradient(attention_map: AttentionMap) -> bool:
    """True for the weights of an attention times their gradients, which are a stack of their own."""
    return attention_map.name.endswith(GRADIENT)


def _weights(attention_map: AttentionMap) -> Array:
    if attention_map.weights is None or attention_map.rows is not None:
        raise ValueError(
            f"rollout and flow need every row of every layer, and of {attention_map.name!r} only "
            f"{'statistics' if attention_map.weights is None else 'some rows'} were recorded; record it with weights=True"
        )
    return np.maximum(attention_map.weights, 0) if is_gradient(attention_map) else attention_map.weights
