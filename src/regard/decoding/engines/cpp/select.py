"""Selection and cache of C++ decoders, valid while the weights stay unchanged."""

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

from regard.attention.types import Memory
from regard.decoding.engines.cpp import convolution, recurrent, transformer
from regard.decoding.engines.cpp.build import UnavailableError, load_library
from regard.decoding.engines.eager.attention import has_empty_source
from regard.decoding.engines.types import SearchEngine
from regard.decoding.engines.version import ModelVersion
from regard.decoding.max_length import find_tensor
from regard.tree import Tree, leaves

KINDS = (transformer, recurrent, convolution)


@dataclass
class CachedEngine:
    """C++ engine with the version of the model and the precision that it was built for."""

    engine: SearchEngine
    watched: ModelVersion
    precision: str
    known: "ref[Tensor] | None" = None
    """First tensor of a memory that `Encoding` made with the current weights, of sources of which none is empty: it is not
    checked again."""


CACHED_ENGINES: WeakKeyDictionary[nn.Module, CachedEngine] = WeakKeyDictionary()
"""C++ engine of each decoder; weakly keyed by the decoder."""


@cache
def is_usable(precision: str) -> bool:
    """Return True if the C++ engine works on this machine; otherwise warn why, and that the default engine is used."""
    try:
        fit = bool(load_library().regard_multiplies_bytes()) or precision != "int8"
    except UnavailableError as error:
        warnings.warn(f"nothing is compiled: {error}. The usual engine answers instead", RuntimeWarning, stacklevel=2)
        return False
    if not fit:
        message = "nothing is compiled in int8: this processor has no instruction for it. The usual engine answers instead"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return fit


def find_engine(decoder: Any, memory: Tree, precision: str = "float32") -> SearchEngine | None:
    """C++ engine of a decoder for these sources, or None if it is not covered."""
    first = find_tensor(memory)
    if not isinstance(decoder, nn.Module) or first.dtype != torch.float32:
        return None
    cached = CACHED_ENGINES.get(decoder)
    if cached is not None and cached.precision == precision and cached.known is not None and cached.known() is first:
        return cached.engine
    if cached is None or cached.precision != precision or not cached.watched.unchanged:
        if find_reason(decoder) is not None or not is_usable(precision):
            return None
        kind: Any = next(kind for kind in KINDS if kind.covers(decoder) is None)
        CACHED_ENGINES[decoder] = cached = CachedEngine(kind.Engine(decoder, precision), ModelVersion(decoder), precision)
        if not cached.watched.unchanged:  # it has hooks
            return None
    return None if any(map(has_empty_source, leaves(memory, Memory))) else cached.engine


def mark_memory(decoder: nn.Module, memory: Tree) -> None:
    """Mark a memory as made with the decoder's current weights."""
    cached = CACHED_ENGINES.get(decoder)
    if cached is not None:
        cached.known = ref(find_tensor(memory))


def find_reason(decoder: Any) -> str | None:
    """Reason why the C++ engine does not cover a decoder, or None."""
    if not isinstance(decoder, nn.Module) or any(parameter.dtype != torch.float32 for parameter in decoder.parameters()):
        return "needs a module in float32"
    reasons = [kind.covers(decoder) for kind in KINDS]
    return None if None in reasons else "; ".join(filter(None, reasons))
