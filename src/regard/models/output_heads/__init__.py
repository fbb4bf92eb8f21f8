"""Output layers: map decoder states to logits over the vocabulary.

One file is one layer, found by its name (`model.output`). Each is built for the size of its input, the vocabulary, the size
of the embeddings and whether it is tied to them, and is called with the data and the table of embeddings. It returns logits:
their softmax is the distribution.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from regard import registry

OutputFactory = Callable[[int, int, int, bool], nn.Module]
"""Factory of an output layer for (size, vocabulary, embedding, tie): output("mixture", heads=4)."""


def make_output_factory(
    name: str, *, score: str = "dot", scale: float = 1.0, heads: int = 4, bias: bool = True
) -> OutputFactory:
    """Factory of the output layer called `name`; it gets those of the options that its constructor takes."""
    return partial(_build, name, {"score": score, "scale": scale, "heads": heads, "bias": bias})


def _build(name: str, options: dict[str, str | float], size: int, vocabulary: int, embedding: int, tie: bool) -> nn.Module:
    sizes = {"size": size, "vocabulary": vocabulary, "embedding": embedding, "tie": tie}
    head: nn.Module = registry.build(name, "output_heads", **sizes, **options)
    return head


def build_weight(vocabulary: int, size: int, tie: bool) -> nn.Parameter | None:
    """Output matrix with a vector for each token, or None where it is tied to the embedding."""
    return None if tie else nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary, size)))
