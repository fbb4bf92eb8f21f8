"""Attention in three visible stages: score -> normalise -> combine.

The stages are here by class name too: `from regard.attention import attend, Additive, Sparsemax, Causal`.
"""

from typing import Any

from regard import registry
from regard.attention import dispatch
from regard.attention.attend import attend
from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.types import Attended, Encoded, Memory, Normaliser, Sampled, Score

__all__ = ["Attended", "Attention", "Encoded", "Memory", "MultiHead", "Normaliser", "Sampled", "Score", "attend"]

dispatch.load_kernels()


def __getattr__(name: str) -> Any:
    for kind in registry.FINDABLE:
        for stem in registry.names(kind):
            if registry.class_name(stem) == name:
                return registry.find(stem, kind)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
