"""A Transformer's layers compiled for its updates: what stands between the matrix products becomes a few kernels.

One layer is compiled and serves all that are like it, so that a deep network takes no longer to compile than a shallow one.
The layers are only exchanged while an update is computed: a search, whose shapes change at every step, goes on without.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch import nn

from regard.models.decoders.transformer import Layer as DecoderLayer
from regard.models.encoders.transformer import Layer as EncoderLayer
from regard.user_cache import set_compiler_cache

PARTS: dict[type[nn.Module], tuple[str, ...]] = {EncoderLayer: ("attend",), DecoderLayer: ("attend", "transform")}
"""Layers with the names of their methods that are compiled."""
BACKEND = "inductor"


class CompiledLayers:
    """While it is entered, the layers of a model run what torch.compile made of them. Lengths stay open after the second."""

    def __init__(self, model: nn.Module):
        set_compiler_cache()
        self.parts: list[tuple[nn.Module, str, Callable[..., Any]]] = [
            (layer, name, torch.compile(getattr(layer, name), backend=BACKEND))
            for layer in model.modules()
            for name in PARTS.get(type(layer), ())
        ]

    def __enter__(self) -> None:
        for layer, name, compiled in self.parts:
            layer.__dict__[name] = compiled  # which hides the method of the class

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for layer, name, _ in self.parts:
            layer.__dict__.pop(name, None)
