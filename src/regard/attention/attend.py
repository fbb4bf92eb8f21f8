"""Reference implementation of attention in three stages, which every kernel has to equal.

score(query, key) -> scores               how well does each key fit the query
normalise(scores, allowed) -> weights     turn fit into a share of attention; the scope says what is allowed at all
weights @ value -> context                read
"""

from collections.abc import Hashable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention import dispatch
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope import Offset, Scope, iterate_parts
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score import combine, prepare
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.statistics import measure
from regard.attention.types import Attended, Memory, Normaliser, Request, Score
from regard.attention.validation import check_alignment, check_inputs


def attend(
    query: Float[Tensor, "batch heads queries query"],
    key: Float[Tensor, "batch key_heads keys key"],
    value: Float[Tensor, "batch key_heads keys value"],
    *,
    score: Score = ScaledDot(),
    normalise: Normaliser = Softmax(),
    scope: Scope = Everywhere(),
    dropout: float = 0.0,
    offset: Offset | None = None,
    impl: str = "auto",
    weights: bool = False,
    statistics: tuple[str, ...] = (),
) -> Attended:
    """Attention of `query` to `key` and `value`: score, normalise, combine.

    The keys may have fewer heads than the queries (grouped-query attention): each then serves a group of neighbouring query
    heads. `offset` is the position of the first query; by default it is keys - queries, so that the last query stands at the
    last key, and 0 where there are more queries than keys. `impl` selects the reference, a fused kernel, or ("auto") the
    kernel if one covers the request. Dropout applies to the weights, between normalise and combine; the weights returned are
    those before it. Padded keys may hold anything, NaN too: they are read as 0.
    """
    if offset is None and query.ndim == key.ndim == 4:
        offset = align_offset(query.shape[2], key.shape[2])
    request = Request(query, key, value, score, normalise, scope, dropout, offset, weights, statistics)  # type: ignore[arg-type]
    kind = None
    if not (torch.compiler.is_compiling() or is_module(score)) and isinstance(impl, str) and isinstance(statistics, tuple):
        kind = dispatch.describe_kind(request, impl)
        if kind in DIRECT:
            return run_request(request, impl, kind)
    check_inputs(query, key, value, score, normalise, scope, statistics)
    padded = [part for part in iterate_parts(scope) if isinstance(part, Padding)]
    for part in padded:
        part.check(key.shape[0], query.shape[1], query.shape[2], key.shape[2])
    check_alignment(query, Memory(key, value), offset)
    if kind is not None and prepare(score, key) is key and not (padded and _reads_padding(request, impl)):
        if len(DIRECT) >= dispatch.DECISION_CACHE_SIZE:
            DIRECT.clear()
        DIRECT.add(kind)
        return run_request(request, impl, kind)
    for part in padded:
        hidden = ~part.keep.to(key.device)[:, None, :, None]
        key, value = key.masked_fill(hidden, 0.0), value.masked_fill(hidden, 0.0)
    return run_request(request._replace(keys=prepare(score, key), values=value), impl)


def is_module(score: object) -> bool:
    """True for a score that learns, whose keys are prepared anew at every call."""
    return isinstance(score, torch.nn.Module)


DIRECT: set[Hashable] = set()
"""Kinds of requests of `attend` whose arguments were checked, and whose keys and values go to a path as they are."""


def _reads_padding(request: Request, impl: str) -> bool:
    """True where the path that is selected would read what padded keys hold."""
    kernel = dispatch.select_kernel(request, impl)
    ignores = getattr(kernel, "ignores_padding", None)
    return ignores is None or not ignores(request)


def build_request(
    query: Float[Tensor, "batch heads queries query"],
    memory: Memory,
    *,
    score: Score,
    normalise: Normaliser,
    scope: Scope,
    dropout: float = 0.0,
    offset: Offset | None = None,
    weights: bool = False,
    statistics: tuple[str, ...] = (),
) -> Request:
    """Build the request of `attend` from prepared keys; raises where memory or offset does not fit the query."""
    check_alignment(query, memory, offset)
    if offset is None:
        offset = align_offset(query.shape[2], memory.keys.shape[2])
    return Request(query, memory.keys, memory.values, score, normalise, scope, dropout, offset, weights, statistics)


def run_request(request: Request, impl: str | dispatch.Kernel = "auto", kind: Hashable = None) -> Attended:
    """Run a request by the path that dispatch selects; `kind` is that of the request where it is known.

    A kernel that exceeds the GPU's resources falls back to the next; not in a graph of torch.compile, nor where `impl` is a
    kernel itself: there the error is raised.
    """
    if not isinstance(impl, str) or torch.compiler.is_compiling():
        kernel = dispatch.select_kernel(request, impl)
        return run_reference(request) if kernel is None else kernel.run(request)
    if impl == "reference":
        return run_reference(request)
    while (decision := dispatch.decide(request, impl, kind)).run is not None:
        try:
            return decision.run(request)
        except Exception as error:
            assert decision.kernel is not None
            dispatch.record_overflow(decision.kernel, request, error)
    return run_reference(request)


def align_offset(queries: int, keys: int) -> int:
    """The offset at which the last query stands at the last key; 0 where there are more queries than keys."""
    more: int | torch.SymInt = keys - queries
    if isinstance(more, torch.SymInt):  # an export leaves lengths open, and max() would decide by those at hand
        return torch.sym_max(more, 0)  # type: ignore[no-untyped-call]
    return max(more, 0)


def run_reference(request: Request, scores: Float[Tensor, "batch scored_heads queries keys"] | None = None) -> Attended:
    """The three stages, one after the other: the result that every kernel must equal.

    A kernel that fuses the score alone passes its `scores`.
    """
    heads = request.query.shape[1]
    allowed = request.allowed
    normalised = request.normalise(request.score(*request.score_arguments) if scores is None else scores, allowed)
    weights, sampled = normalised if isinstance(normalised, tuple) else (normalised, None)
    dropped = F.dropout(weights, request.dropout) if request.dropout else weights
    combined = combine(request.score, dropped, repeat_heads(request.values, heads), request.offset)
    context = combined.expand(-1, heads, -1, -1)  # one set of weights may serve all heads
    return Attended(
        context=context,
        weights=weights if request.weights else None,
        statistics=measure(weights, allowed, request.statistics),
        sampled=sampled,
    )
