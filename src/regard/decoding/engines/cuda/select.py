"""Selection and cache of GPU searches, valid while the weights stay unchanged."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import nn

from regard.decoding.engines.cuda import generic, transformer
from regard.decoding.engines.cuda.search import GPUSearch
from regard.decoding.engines.select import has_hooks
from regard.decoding.engines.version import ModelVersion
from regard.decoding.max_length import find_tensor
from regard.errors import ConfigError
from regard.tree import Tree

KINDS = (transformer, generic)


class CachedSearch(NamedTuple):
    """GPU search with the version of the model and the options that it was made for."""

    search: GPUSearch
    watched: ModelVersion
    how: tuple[Any, ...]


SEARCHES: WeakKeyDictionary[nn.Module, CachedSearch] = WeakKeyDictionary()
"""GPU search of each decoder; weakly keyed by the decoder."""


def select_gpu_search(decoder: Any, memory: Tree, precision: str = "float32", compiled: bool = False) -> GPUSearch | None:
    """Select the GPU search for a model in inference; None elsewhere, and where only the reference covers it."""
    if find_tensor(memory).device.type != "cuda" or torch.is_autocast_enabled("cuda") or precision == "int8":
        return None
    return find_search(decoder, memory, precision, compiled)


def find_search(decoder: Any, memory: Tree, precision: str = "float32", compiled: bool = False) -> GPUSearch | None:
    """GPU search for a decoder and these sources, in their precision.

    None where only the reference covers it; with bf16, which the reference does not have, that raises. `compiled` lets
    torch.compile fuse small kernels, which takes its time for each new shape.
    """
    like = find_tensor(memory)
    how = like.dtype, like.device, compiled
    cached = SEARCHES.get(decoder) if isinstance(decoder, nn.Module) and not decoder.training else None
    if cached is not None and cached.how == how and cached.watched.unchanged:
        return cached.search
    why = find_reason(decoder)
    if why is not None and precision == "bf16":
        raise ConfigError(f"precision=bf16 does not cover this model: {why}; use precision=float32")
    if why is not None:
        return None
    kind = next(kind for kind in KINDS if kind.covers(decoder) is None)
    engine = kind.Engine(decoder, like.dtype, compiled)
    SEARCHES[decoder] = cached = CachedSearch(GPUSearch(engine, like.device), ModelVersion(decoder), how)
    return cached.search


def covers_half_precision(model: Any) -> bool:
    """True if encoder and decoder of a model can be computed in bf16."""
    decoder = getattr(model, "decoder", None)
    return not any(map(has_hooks, model.modules())) and not model.training and find_reason(decoder) is None


def find_reason(decoder: Any) -> str | None:
    """Reason why the GPU search does not cover a decoder, or None."""
    if not isinstance(decoder, nn.Module) or decoder.training:
        return "it needs a trained module"
    if any(map(has_hooks, decoder.modules())):
        return "its modules have forward hooks"
    reasons = [kind.covers(decoder) for kind in KINDS]
    return None if None in reasons else "; ".join(filter(None, reasons))
