"""Recorders that listen to attention functions of other libraries: the place where both meet.

An attention function asks `find_listener` whether anybody records the module that calls it, and hands its call over.
The list is empty while nothing is recorded, so that looking costs one truth value.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from regard.viewer.record.external.product import Product


@runtime_checkable
class Listener(Protocol):
    """Recorder of the calls of attention functions."""

    def records(self, module: nn.Module) -> bool:
        """True if calls of this module are recorded now."""
        ...

    def hear(self, module: nn.Module, product: Product, run: Callable[[Product], Tensor], kernel: str) -> Tensor:
        """Record a call of a module, and return its context (batch, heads, queries, dim)."""
        ...


LISTENERS: list[Listener] = []
"""Recorders inside their `with` block."""


def find_listener(module: nn.Module) -> Listener | None:
    """The innermost recorder of a module, or None."""
    return next((listener for listener in reversed(LISTENERS) if listener.records(module)), None)
