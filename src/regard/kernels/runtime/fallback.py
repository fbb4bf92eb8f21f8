"""The last resort where a kernel does not fit a GPU after all: it is left from then on, and the next one is asked."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from regard.attention.types import Attended, Request

REFUSED: dict[Hashable, str] = {}
"""What a GPU had no room for, and the reason."""


def against(kernel: Any, request: "Request") -> str | None:
    """None where a kernel covers a request and was not refused for its like, else the reason why not."""
    reason: str | None = kernel.covers(request)
    return REFUSED.get(_like(kernel, request)) if reason is None and REFUSED else reason


def attempt(kernel: Any, request: "Request") -> "Attended | None":
    """What a kernel answers, or None where the GPU has no room even for its smallest tiles, which is remembered.

    What torch.compile traced has no second way: there the error comes out.
    """
    if torch.compiler.is_compiling():
        return kernel.run(request)
    try:
        return kernel.run(request)
    except Exception as error:
        if type(error).__name__ != "OutOfResources":  # Triton's, which need not be installed
            raise
        REFUSED[_like(kernel, request)] = f"needs more than this GPU has: {error}"
    return None


def _like(kernel: Any, request: "Request") -> Hashable:
    query, values = request.query, request.values
    return kernel, query.device, query.dtype, query.shape[-1], values.shape[-1]
