"""Which engine a decoder gets, and keeping it for as long as its weights stay what they are."""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from regard.attention.types import Memory
from regard.decoding.engines.cpp.select import ready as in_machine_code
from regard.decoding.engines.cpu import convolution, recurrent, transformer
from regard.decoding.engines.cpu.attention import blind
from regard.decoding.engines.eager import Any as AsItIs
from regard.decoding.engines.types import Engine
from regard.decoding.max_length import first_tensor
from regard.errors import ConfigError
from regard.models.types import Decoder
from regard.tree import Tree, leaves

Signature = tuple[Any, ...]
KEPT: WeakKeyDictionary[nn.Module, tuple[Signature, Engine]] = WeakKeyDictionary()
"""The engine of each decoder, with what it was made from; it goes when the decoder goes."""
KINDS = (transformer, recurrent, convolution)


def ready(decoder: Decoder, memory: Tree, precision: str = "float32", compiled: bool = False) -> Engine | None:
    """The engine for a decoder that has read these sources; None where only the search of `decoding` will do.

    That is so on a GPU, which has an engine of its own (`native/gpu`), and while a model trains. A decoder that no engine
    covers, or somebody listens to, is taken as it is; in int8 it is refused, since nothing of it would be rounded.
    `compiled` asks for the engine in machine code (`native/compiled`), where that takes the decoder and can be made here.
    """
    if precision == "bf16":
        raise ConfigError("precision=bf16 is for whole answers of a trained model on a GPU; use float32, or --device cuda")
    if first_tensor(memory).device.type != "cpu" or torch.is_autocast_enabled("cpu") or getattr(decoder, "training", False):
        if precision != "float32":
            raise ConfigError(f"precision={precision} is for a trained model on a CPU; use float32, or --device cpu")
        return None
    if compiled and (found := in_machine_code(decoder, memory, precision)) is not None:
        return found
    reason, kind = uncovered(decoder, memory)
    if kind is None:
        if precision != "float32":
            raise ConfigError(f"precision={precision} does not cover this model: {reason}; use precision=float32")
        return AsItIs(decoder)
    assert isinstance(decoder, nn.Module)
    now = (precision, *((each.data_ptr(), each._version) for each in decoder.parameters()))
    kept = KEPT.get(decoder)
    if kept is None or kept[0] != now:
        made: Engine = kind.Engine(decoder, precision)
        KEPT[decoder] = kept = now, made
    return kept[1]


def uncovered(decoder: Any, memory: Tree) -> tuple[str, Any]:
    """The file that makes an engine for this decoder; or, with None, the reason why none does."""
    if not isinstance(decoder, nn.Module) or first_tensor(memory).dtype != torch.float32:
        return "it needs a module in float32", None
    if any(map(listened, decoder.modules())):
        return "somebody listens to its modules", None
    if any(map(blind, leaves(memory, Memory))):
        return "one of its sources is empty", None
    reasons = []
    for kind in KINDS:
        reason = kind.covers(decoder)
        if reason is None:
            return "", kind
        reasons.append(reason)
    return "; ".join(reasons), None


def listened(module: nn.Module) -> bool:
    """Whether somebody hears it: by a hook, or by a method of theirs in the place of its own."""
    return bool(module._forward_hooks or module._forward_pre_hooks or {"forward", "step"} & module.__dict__.keys())
