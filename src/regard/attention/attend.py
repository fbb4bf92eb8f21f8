"""Reference implementation of attention in three stages, which every kernel has to equal.

score(query, key) -> scores               how well does each key fit the query
normalise(scores, allowed) -> weights     turn fit into a share of attention; the scope says what is allowed at all
weights @ value -> context                read
"""

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
    check_inputs(query, key, value, score, normalise, scope, statistics)
    for part in iterate_parts(scope):
        if isinstance(part, Padding):
            part.check(key.shape[0], query.shape[1], query.shape[2], key.shape[2])
            hidden = ~part.keep.to(key.device)[:, None, :, None]
            key, value = key.masked_fill(hidden, 0.0), value.masked_fill(hidden, 0.0)
    request = build_request(
        query,
        Memory(prepare(score, key), value),
        score=score,
        normalise=normalise,
        scope=scope,
        dropout=dropout,
        offset=offset,
        weights=weights,
        statistics=statistics,
    )
    return run_request(request, impl)


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


def run_request(request: Request, impl: str | dispatch.Kernel = "auto") -> Attended:
    """Run a request by the kernel that dispatch selects, or the reference.

    A kernel that exceeds the GPU's resources falls back to the next; not in a graph of torch.compile, nor where `impl` is a
    kernel itself: there the error is raised.
    """
    while (kernel := dispatch.select_kernel(request, impl)) is not None:
        if not isinstance(impl, str) or torch.compiler.is_compiling():
            return kernel.run(request)
        try:
            return kernel.run(request)
        except Exception as error:
            dispatch.record_overflow(kernel, request, error)
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
