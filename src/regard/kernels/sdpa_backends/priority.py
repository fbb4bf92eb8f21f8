"""Context manager that sets the priority of PyTorch's SDPA backends for one call.

torch.nn.attention.sdpa_kernel does this but also disables and enables every backend, which takes tens of microseconds on a
busy host, as long as a short attention runs. Setting the order alone takes one or two, and respects what the user has
disabled. The order is global to the process, so that threads hold a lock.
"""

from contextlib import AbstractContextManager
from threading import RLock
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

LOCK = RLock()
CAN_SET_ORDER = hasattr(torch._C, "_set_sdp_priority_order") and hasattr(torch._C, "_get_sdp_priority_order")
"""True if this PyTorch can set the order alone."""


def set_priority(order: tuple[SDPBackend, ...]) -> AbstractContextManager[Any]:
    """Set this backend priority; unnamed backends come last, and the last named one has to be math."""
    if torch.compiler.is_compiling() or not CAN_SET_ORDER:  # the compiler recognises PyTorch's own by name
        return sdpa_kernel(list(order), set_priority=True)
    return Priority(order)


class Priority(AbstractContextManager[None]):
    """Context manager of the order alone, restored at the end; a no-op where it is already set."""

    def __init__(self, order: tuple[SDPBackend, ...]):
        self.order = [each.value for each in order]

    def __enter__(self) -> None:
        LOCK.acquire()
        self.before = torch._C._get_sdp_priority_order()
        self.changes = self.before[: len(self.order)] != self.order
        if self.changes:
            torch._C._set_sdp_priority_order([*self.order, *(each for each in self.before if each not in self.order)])

    def __exit__(self, *raised: object) -> None:
        try:
            if self.changes:
                torch._C._set_sdp_priority_order(self.before)
        finally:
            LOCK.release()
