"""Dispatch of attend(): selects the fused kernel that runs a request, or the reference.

Kernels are the files of `regard/kernels/`; each says what it covers, and they are tried in the order of `ORDER`. A kernel
that exceeds a GPU's resources is skipped from then on.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from regard import registry

if TYPE_CHECKING:
    from regard.attention.types import Attended, Request


@runtime_checkable
class Kernel(Protocol):
    """Protocol of a kernel's module."""

    def covers(self, request: "Request") -> str | None: ...

    def run(self, request: "Request") -> "Attended": ...


ORDER = (
    "additive",
    "additive_gpu",
    "short",
    "decode",
    "flash",
    "flex",
    "linear",
    "predicted_window",
    "weights",
    "sdpa",
    "entmax",
)
"""Kernels by file name in dispatch order: the first that covers a request and is worthwhile runs.

The order is part of what a user gets (a renamed or added file must not change which kernel runs), so a test pins it.
"""

KERNELS: dict[str, Kernel] = {}
"""The kernel modules by name, in that order."""

OVERFLOWS: dict[Hashable, str] = {}
"""Kinds of requests on which a kernel exceeded a GPU's resources, with the reason."""


def select_kernel(request: "Request", impl: str | Kernel) -> Kernel | None:
    """Select the kernel of this request, or None for the reference; "fused" never falls back in silence.

    `impl` may be a kernel itself, which then takes every request: a trace is recorded that way.
    """
    if not isinstance(impl, str):
        return impl
    if impl == "reference":
        return None
    if impl not in ("auto", "fused"):
        raise ValueError(f"impl needs to be 'auto', 'reference' or 'fused', got {impl!r}")
    reasons, able = [], []
    for name, kernel in KERNELS.items():
        reason = find_refusal(kernel, request)
        if reason is not None:
            reasons.append(f"{name} {reason}")
        elif is_worthwhile(kernel, request) or (impl == "fused" and is_untimed(kernel, request)):
            return kernel
        else:  # perhaps another one pays
            able.append(kernel)
    if impl == "fused" and able:
        return able[0]
    if impl == "fused":
        raise ValueError(f"no kernel covers this request: {'; '.join(reasons)}. impl='auto' takes the reference instead")
    return None


def find_refusal(kernel: Kernel, request: "Request") -> str | None:
    """The reason a kernel does not cover a request, or ran out of resources on one like it; None where it covers it."""
    reason = kernel.covers(request)
    return OVERFLOWS.get(_build_request_key(kernel, request)) if reason is None and OVERFLOWS else reason


def record_overflow(kernel: Kernel, request: "Request", error: Exception) -> None:
    """Record that even a kernel's smallest tiles exceed the GPU's resources, so that it is skipped from then on.

    Raises any other error.
    """
    if type(error).__name__ != "OutOfResources":  # Triton's, which need not be installed
        raise error
    OVERFLOWS[_build_request_key(kernel, request)] = f"needs more than this GPU has: {error}"


def _build_request_key(kernel: Kernel, request: "Request") -> Hashable:
    query, values = request.query, request.values
    return kernel, query.device, query.dtype, query.shape[-1], values.shape[-1]


def is_worthwhile(kernel: Kernel, request: "Request") -> bool:
    """True if a kernel that covers a request is also faster than the alternatives; by default it is."""
    predicate = getattr(kernel, "worthwhile", None)
    return predicate is None or bool(predicate(request))


def is_untimed(kernel: Kernel, request: "Request") -> bool:
    """True if a kernel is made for such a request but was not timed on it: "auto" skips it, "fused" tries it first."""
    predicate = getattr(kernel, "untimed", None)
    return predicate is not None and bool(predicate(request))


def load_kernels() -> None:
    """Import every kernel file once, before anything is traced; dependencies beyond torch are imported when it runs."""
    for name in ORDER:
        KERNELS[name] = cast(Kernel, registry.load("kernels", name))
