"""PyTorch's backends in another order, for the length of one call.

torch.nn.attention.sdpa_kernel does this and switches every backend off and on besides, which takes tens of microseconds on
a busy host, as long as a short attention runs. Setting the order alone takes one or two, and respects what the user has
switched off. The order belongs to the process, so that calls of several threads take turns.
"""

from contextlib import AbstractContextManager
from threading import RLock
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

TURN = RLock()
QUICK = hasattr(torch._C, "_set_sdp_priority_order") and hasattr(torch._C, "_get_sdp_priority_order")
"""Whether the order can be set by itself."""


def prioritised(order: tuple[SDPBackend, ...]) -> AbstractContextManager[Any]:
    """Ask the backends in this order. What is not named comes last; the last one named needs to be math."""
    if torch.compiler.is_compiling() or not QUICK:  # the compiler knows PyTorch's own by name
        return sdpa_kernel(list(order), set_priority=True)
    return Priority(order)


class Priority(AbstractContextManager[None]):
    """The order alone, put back at the end; nothing is done where it is the one that holds."""

    def __init__(self, order: tuple[SDPBackend, ...]):
        self.order = [each.value for each in order]

    def __enter__(self) -> None:
        TURN.acquire()
        self.before = torch._C._get_sdp_priority_order()
        self.changes = self.before[: len(self.order)] != self.order
        if self.changes:
            torch._C._set_sdp_priority_order([*self.order, *(each for each in self.before if each not in self.order)])

    def __exit__(self, *raised: object) -> None:
        try:
            if self.changes:
                torch._C._set_sdp_priority_order(self.before)
        finally:
            TURN.release()
