"""Output layers: how what a decoder found becomes a choice among the words of its vocabulary.

One file is one layer, found by its name (`model.output`). Each is made for the size of what it is given, the vocabulary, the
width of the embeddings and whether it is tied to them, and is called with the data and the table of embeddings. What it
gives are logits: their softmax is the distribution.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from regard import registry

Make = Callable[[int, int, int, bool], nn.Module]
"""Makes a layer for (size, vocabulary, embedding, tie): output("mixture", heads=4)."""


def output(name: str, *, score: str = "dot", scale: float = 1.0, heads: int = 4, bias: bool = True) -> Make:
    """The maker of the layer called `name`; of the options it is told those that it has a place for."""
    return partial(_build, name, {"score": score, "scale": scale, "heads": heads, "bias": bias})


def _build(name: str, options: dict[str, str | float], size: int, vocabulary: int, embedding: int, tie: bool) -> nn.Module:
    sizes = {"size": size, "vocabulary": vocabulary, "embedding": embedding, "tie": tie}
    made: nn.Module = registry.build(name, "output_heads", **sizes, **options)
    return made


def matrix(vocabulary: int, size: int, tie: bool) -> nn.Parameter | None:
    """A vector for each word, or None where those of the embedding serve."""
    return None if tie else nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary, size)))
