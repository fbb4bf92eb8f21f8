"""Fallback from a kernel that exceeds a GPU's resources: it is skipped from then on for the next one."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from regard.attention.types import Attended, Request

REFUSED: dict[Hashable, str] = {}
"""Requests that exceeded a GPU's resources, with the reason."""


def find_refusal(kernel: Any, request: "Request") -> str | None:
    """The reason a kernel does not cover a request, or ran out of resources on one like it; None where it covers it."""
    reason: str | None = kernel.covers(request)
    return REFUSED.get(_build_request_key(kernel, request)) if reason is None and REFUSED else reason


def try_kernel(kernel: Any, request: "Request") -> "Attended | None":
    """Run a kernel; None where even its smallest tiles exceed the GPU's resources, which is remembered.

    A graph of torch.compile has no fallback: there the error is raised.
    """
    if torch.compiler.is_compiling():
        return kernel.run(request)
    try:
        return kernel.run(request)
    except Exception as error:
        if type(error).__name__ != "OutOfResources":  # Triton's, which need not be installed
            raise
        REFUSED[_build_request_key(kernel, request)] = f"needs more than this GPU has: {error}"
    return None


def _build_request_key(kernel: Any, request: "Request") -> Hashable:
    query, values = request.query, request.values
    return kernel, query.device, query.dtype, query.shape[-1], values.shape[-1]
