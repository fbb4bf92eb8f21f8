"""Workload of a request: the sizes from which every path estimates its time and memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.scope import And, Not, Or, Scope, iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.types import Request

HALVES = (torch.float16, torch.bfloat16)


class Workload(NamedTuple):
    """Sizes of a request, and what it asks for beyond the context."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    size: int
    """Size of a prepared key."""
    value: int
    element: int
    """Bytes of a number."""
    precision: str
    """half, float32 or float64."""
    gradient: str
    """forward, training, or query where the query alone has a gradient."""
    visible: float
    """Fraction of the pairs that causal and local masks leave."""
    mask: int
    """Elements of the mask that a path without the parts of the scope forms; 0 without a mask."""
    padded: bool
    windowed: bool
    rest: bool
    """True where the scope has parts other than padding, causal and local masks."""
    dropout: bool
    weights: bool
    statistics: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key, over all heads and rows."""
        return self.batch * self.heads * self.queries * self.keys

    @property
    def inputs(self) -> int:
        """Bytes of query, keys and values."""
        queries = self.batch * self.heads * self.queries * self.size
        memory = self.batch * self.key_heads * self.keys * (self.size + self.value)
        return self.element * (queries + memory)

    @property
    def output(self) -> int:
        """Bytes of the context, and of the gradients of query, keys and values where there are some."""
        context = self.element * self.batch * self.heads * self.queries * self.value
        return context + (self.inputs if self.gradient == "training" else 0)


SHARED = threading.local()
"""Workload of the request whose paths are asked at present, by thread."""


@contextmanager
def share_workload(request: Request) -> Iterator[None]:
    """All paths that are asked about a request inside read one workload, which is forgotten at the end."""
    SHARED.latest = request, _measure(request)
    try:
        yield
    finally:
        SHARED.latest = None


def measure_workload(request: Request) -> Workload:
    """The workload of a request."""
    latest: tuple[Request, Workload] | None = getattr(SHARED, "latest", None)
    return latest[1] if latest is not None and latest[0] is request else _measure(request)


def _measure(request: Request) -> Workload:
    query, keys, values, scope = request.query, request.keys, request.values, request.scope
    batch, heads, queries, _ = query.shape
    length = keys.shape[2]
    parts = list(iterate_parts(scope))
    return Workload(
        batch=batch,
        heads=heads,
        key_heads=keys.shape[1],
        queries=queries,
        keys=length,
        size=keys.shape[3],
        value=values.shape[3],
        element=values.element_size(),
        precision=_find_precision(request),
        gradient=find_gradient(request),
        visible=_find_share(parts, queries, length, request.offset),
        mask=_count_mask(scope, batch, heads, queries, length, isinstance(request.offset, Tensor)),
        padded=any(type(part) is Padding for part in parts),
        windowed=any(type(part) is Local for part in parts),
        rest=any(type(part) not in (Everywhere, Padding, Causal, Local) for part in parts),
        dropout=bool(request.dropout),
        weights=request.weights,
        statistics=request.statistics,
    )


def find_gradient(request: Request) -> str:
    """forward without a gradient, query where the query alone has one, else training."""
    if not torch.is_grad_enabled():
        return "forward"
    if request.keys.requires_grad or request.values.requires_grad:
        return "training"
    return "query" if request.query.requires_grad else "forward"


def _find_precision(request: Request) -> str:
    dtype = request.query.dtype
    if torch.is_autocast_enabled(request.device) and dtype != torch.float64:
        dtype = torch.get_autocast_dtype(request.device)
    return "half" if dtype in HALVES else "float64" if dtype == torch.float64 else "float32"


def _find_share(parts: list[Scope], queries: int, keys: int, offset: int | Tensor) -> float:
    """Mean fraction of the keys between the bounds of causal and local masks."""
    ahead, behind = keys, queries + keys
    for part in parts:
        if type(part) is Causal:
            ahead = 0
        elif type(part) is Local:
            ahead, behind = min(ahead, part.window), min(behind, part.window)
    if not (queries and keys) or (ahead >= keys and behind >= queries + keys):
        return 1.0
    first = max(keys - queries, 0) if isinstance(offset, Tensor) else offset
    step = max(1, queries // 16)  # a sample of the queries is exact enough
    places = [first + place for place in range(step // 2, queries, step)]
    counts = [max(0, min(keys, place + ahead + 1) - max(0, place - behind)) for place in places]
    return sum(counts) / (len(counts) * keys)


def _count_mask(scope: Scope, batch: int, heads: int, queries: int, keys: int, by_row: bool) -> int:
    rows, columns = _find_axes(scope)
    if by_row and columns:
        rows = True
    if not (rows or columns):
        return 0
    return (batch if rows else 1) * (queries if columns else 1) * keys


def _find_axes(scope: Scope) -> tuple[bool, bool]:
    """Two flags: the mask differs between rows of the batch, and between queries."""
    if isinstance(scope, And | Or):
        left, right = _find_axes(scope.left), _find_axes(scope.right)
        return left[0] or right[0], left[1] or right[1]
    if isinstance(scope, Not):
        return _find_axes(scope.inner)
    if isinstance(scope, Everywhere):
        return False, False
    if isinstance(scope, Padding):
        return True, False
    return isinstance(scope, Document), True
