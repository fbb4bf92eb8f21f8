"""Selection and cache of decoding engines, valid while the weights stay unchanged."""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from regard.attention.types import Memory
from regard.decoding.engines.cpp.select import find_engine as in_machine_code
from regard.decoding.engines.eager import convolution, recurrent, transformer
from regard.decoding.engines.eager.attention import has_empty_source
from regard.decoding.engines.eager.modules import EagerEngine as AsItIs
from regard.decoding.engines.types import Engine
from regard.decoding.max_length import find_tensor
from regard.errors import ConfigError
from regard.models.types import Decoder
from regard.tree import Tree, leaves

Signature = tuple[Any, ...]
ENGINES: WeakKeyDictionary[nn.Module, tuple[Signature, Engine]] = WeakKeyDictionary()
"""Engine of each decoder, with the version of its weights; weakly keyed by the decoder."""
KINDS = (transformer, recurrent, convolution)


def select_engine(decoder: Decoder, memory: Tree, precision: str = "float32", compiled: bool = False) -> Engine | None:
    """Select the engine for a decoder and these sources; None where only the search of `decoding` covers it.

    That is so on a GPU, which has an engine of its own (`engines/cuda`), and in training. A decoder that no engine covers,
    or that has hooks, is called as a module; in int8 that raises, since nothing would be quantised. `compiled` asks for the
    C++ engine (`engines/cpp`), where it covers the decoder and can be built here.
    """
    if precision == "bf16":
        raise ConfigError("precision=bf16 is for whole answers of a trained model on a GPU; use float32, or --device cuda")
    if find_tensor(memory).device.type != "cpu" or torch.is_autocast_enabled("cpu") or getattr(decoder, "training", False):
        if precision != "float32":
            raise ConfigError(f"precision={precision} is for a trained model on a CPU; use float32, or --device cpu")
        return None
    if compiled and (cpp_engine := in_machine_code(decoder, memory, precision)) is not None:
        return cpp_engine
    reason, kind = find_engine_module(decoder, memory)
    if kind is None:
        if precision != "float32":
            raise ConfigError(f"precision={precision} does not cover this model: {reason}; use precision=float32")
        return AsItIs(decoder)
    assert isinstance(decoder, nn.Module)
    signature = (precision, *((parameter.data_ptr(), parameter._version) for parameter in decoder.parameters()))
    entry = ENGINES.get(decoder)
    if entry is None or entry[0] != signature:
        engine: Engine = kind.Engine(decoder, precision)
        ENGINES[decoder] = entry = signature, engine
    return entry[1]


def find_engine_module(decoder: Any, memory: Tree) -> tuple[str, Any]:
    """Module with an engine for this decoder; or, with None, the reason why there is none."""
    if not isinstance(decoder, nn.Module) or find_tensor(memory).dtype != torch.float32:
        return "it needs a module in float32", None
    if any(map(has_hooks, decoder.modules())):
        return "its modules have forward hooks", None
    if any(map(has_empty_source, leaves(memory, Memory))):
        return "one of its sources is empty", None
    reasons = []
    for kind in KINDS:
        reason = kind.covers(decoder)
        if reason is None:
            return "", kind
        reasons.append(reason)
    return "; ".join(reasons), None


def has_hooks(module: nn.Module) -> bool:
    """Return True if a module has forward hooks, or an instance attribute in the place of a method."""
    return bool(module._forward_hooks or module._forward_pre_hooks or {"forward", "step"} & module.__dict__.keys())
