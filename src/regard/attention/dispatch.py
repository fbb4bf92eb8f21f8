"""Dispatch of attend(): selects the cheapest path that computes a request, a fused kernel or the reference.

Kernels are the files of `regard/kernels/`. Each says what it covers, and estimates its time on the device of a request with
the host's time included (`cost.py`). Of the paths within a tenth of the shortest time the one that takes least memory runs.
A decision depends on the request and the device alone, and is cached by the kind of the request: shapes, dtypes, stages,
gradients. A kernel that exceeds a GPU's resources is skipped from then on.
"""

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from regard import registry
from regard.attention import reference
from regard.attention.cost import Work
from regard.attention.scope import And, Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.workload import share_workload

if TYPE_CHECKING:
    from regard.attention.types import Attended, Request


@runtime_checkable
class Kernel(Protocol):
    """Protocol of what can compute a request.

    It may also have `specialise(request)`, a function that runs all requests of one kind with less time of the host, or
    None; and `ignores_padding(request)`, True where its result does not depend on what padded keys hold.
    """

    def covers(self, request: "Request") -> str | None: ...

    def run(self, request: "Request") -> "Attended": ...


@runtime_checkable
class CostedKernel(Kernel, Protocol):
    """Protocol of a kernel's module, which estimates its time in microseconds, and counts the work that it follows from."""

    def cost(self, request: "Request") -> float: ...

    def count_work(self, request: "Request") -> Work: ...


class Path(NamedTuple):
    """One way to compute a request: its estimated time and memory, or the reason why it cannot."""

    name: str
    microseconds: float
    bytes: float | int
    reason: str | None = None


class Decision(NamedTuple):
    """The kernel of a kind of request, None for the reference, and the function that runs it."""

    kernel: Kernel | None
    run: "Callable[[Request], Attended] | None"


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
"""Kernels by file name, in the order of messages and of graphs of torch.compile, which know no sizes."""

KERNELS: dict[str, Kernel] = {}
"""The kernel modules by name, in that order."""

OVERFLOWS: dict[Hashable, str] = {}
"""Kinds of requests on which a kernel exceeded a GPU's resources, with the reason."""

DECISIONS: dict[Hashable, Decision] = {}
"""Decisions by kind of request."""
DECISION_CACHE_SIZE = 16384
"""Size of that cache, which is cleared when full."""
WITHIN = 1.1
"""Paths within this factor of the shortest time are as good as each other, and the leanest of them runs."""
NUMBERS = frozenset((int, float, bool, str, type(None)))
FREE = (Everywhere, Causal)
"""Scopes without a field."""
SIMPLE = (Everywhere, Padding, Causal, Local)
"""Scopes whose decision depends on nothing that a program does beside the call, such as CUDA graph capture."""


def select_kernel(request: "Request", impl: str | Kernel) -> Kernel | None:
    """Select the kernel of this request, or None for the reference; "fused" never falls back in silence.

    `impl` may be a kernel itself, which then takes every request: a trace is recorded that way.
    """
    if not isinstance(impl, str):
        return impl
    if impl == "reference":
        return None
    if torch.compiler.is_compiling():
        return _select_for_graph(request, impl)
    return decide(request, impl).kernel


def decide(request: "Request", impl: str = "auto", kind: Hashable = None) -> Decision:
    """The cached decision of a request; `kind` is its kind where it is known."""
    if kind is None:
        kind = describe_kind(request, impl)
    decision = DECISIONS.get(kind)
    if decision is None:
        kernel = _select_cheapest(request, impl)
        specialise = getattr(kernel, "specialise", None)
        run = None if kernel is None else (specialise and specialise(request)) or kernel.run
        decision = Decision(kernel, run)
        if len(DECISIONS) >= DECISION_CACHE_SIZE:
            DECISIONS.clear()
        DECISIONS[kind] = decision
    return decision


def _select_cheapest(request: "Request", impl: str) -> Kernel | None:
    _check_impl(impl)
    paths = list_paths(request)
    if impl == "fused":
        paths = [path for path in paths if path.name != reference.NAME]
    name = select_path(paths)
    if name is None:
        _refuse(paths)
    return None if name == reference.NAME else KERNELS[cast(str, name)]


def select_path(paths: list[Path]) -> str | None:
    """The leanest of the paths within a tenth of the shortest time; of equal ones the quickest, then the first by name."""
    able = [path for path in paths if path.reason is None]
    if not able:
        return None
    limit = WITHIN * min(path.microseconds for path in able)
    near = [path for path in able if path.microseconds <= limit]
    return min(near or able, key=lambda path: (path.bytes, path.microseconds, path.name)).name


def list_paths(request: "Request") -> list[Path]:
    """Every path with its estimated time and memory, or its reason; the reference comes last."""
    with share_workload(request):
        paths = [_estimate_path(name, kernel, request) for name, kernel in KERNELS.items()]
        return [*paths, Path(reference.NAME, reference.cost(request), reference.count_work(request).memory)]


def _estimate_path(name: str, kernel: Kernel, request: "Request") -> Path:
    reason = find_refusal(kernel, request)
    if reason is not None:
        return Path(name, float("inf"), float("inf"), reason)
    estimate, count = getattr(kernel, "cost", None), getattr(kernel, "count_work", None)
    taken = estimate(request) if estimate else 0.0
    return Path(name, taken, count(request).memory if count and math.isfinite(taken) else 0.0)


def describe_kind(request: "Request", impl: str) -> Hashable:
    """The kind of a request: equal where the decision is."""
    query, keys, values, score, normalise, scope, dropout, offset, weights, statistics = request
    return (
        query.shape,
        keys.shape,
        values.shape,
        query.dtype,
        keys.dtype,
        values.dtype,
        query.device,
        torch.is_grad_enabled() and (query.requires_grad, keys.requires_grad, values.requires_grad),
        describe_stage(score),
        describe_stage(normalise),
        scope.__class__ if scope.__class__ in FREE else describe_scope(scope),
        not dropout,
        offset if offset.__class__ is int else offset.__class__,
        weights,
        statistics,
        impl,
        torch.get_num_threads() if query.device.type == "cpu" else query.stride(-1) == 1,
        torch.is_autocast_enabled(query.device.type) and torch.get_autocast_dtype(query.device.type),
        id(KERNELS),
    )


def describe_stage(stage: Any) -> Hashable:
    """A stage as part of a kind: its class, its numbers, and the shapes of its tensors."""
    fields = getattr(stage, "__dict__", None)
    if not fields:
        return stage.__class__
    if "_parameters" in fields:  # a module, whose own modules show in the prepared keys
        numbers = [value for name, value in fields.items() if value.__class__ in NUMBERS and name[0] != "_"]
        return stage.__class__, *numbers, *map(_describe_field, fields["_parameters"].values())
    return stage.__class__, *map(_describe_field, fields.values())


def _describe_field(value: Any) -> Hashable:
    if value.__class__ in NUMBERS:
        return value
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device, value.requires_grad
    return describe_stage(value)


def describe_scope(scope: Scope) -> Hashable:
    """A scope as part of a kind: its types, its numbers, and the shapes of its tensors."""
    if scope.__class__ is Padding:
        return Padding, scope.keep.shape, scope.keep.device
    kind = describe_stage(scope)
    if all(part in SIMPLE for part in _list_types(scope)):
        return kind
    capturing = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]
    return kind, capturing


def _list_types(scope: Scope) -> list[type[Scope]]:
    if scope.__class__ is And:
        return [*_list_types(scope.left), *_list_types(scope.right)]
    return [scope.__class__]


def _check_impl(impl: str) -> None:
    if impl not in ("auto", "fused", "reference"):
        raise ValueError(f"impl needs to be 'auto', 'reference' or 'fused', got {impl!r}")


def _refuse(paths: list[Path]) -> None:
    reasons = "; ".join(f"{path.name} {path.reason}" for path in paths)
    raise ValueError(f"no kernel covers this request: {reasons}. impl='auto' takes the reference instead")


def _select_for_graph(request: "Request", impl: str) -> Kernel | None:
    """The first kernel that covers a request of a graph, whose sizes may be open, and suits graphs."""
    _check_impl(impl)
    able, paths = [], []
    for name, kernel in KERNELS.items():
        reason = find_refusal(kernel, request)
        if reason is not None:
            paths.append(Path(name, 0.0, 0.0, reason))
            continue
        suits = getattr(kernel, "suits_graph", None)
        if suits is None or suits(request):
            return kernel
        able.append(kernel)
    if impl == "fused" and not able:
        _refuse(paths)
    return able[0] if able and impl == "fused" else None


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
    forget_decisions()


def forget_decisions() -> None:
    """Forget all decisions, after what a kernel covers has changed."""
    DECISIONS.clear()


def _build_request_key(kernel: Kernel, request: "Request") -> Hashable:
    query, values = request.query, request.values
    return kernel, query.device, query.dtype, query.shape[-1], values.shape[-1]


def load_kernels() -> None:
    """Import every kernel file once, before anything is traced; dependencies beyond torch are imported when it runs."""
    for name in ORDER:
        KERNELS[name] = cast(Kernel, registry.load("kernels", name))
