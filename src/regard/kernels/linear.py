"""Linear attention: attend(score=FeatureMap, normalise=SumToOne(), scope=any of Everywhere, Padding, Causal).

Weights proportional to φ(q)ᵀφ(k) make the products associative, so that keys and values are multiplied first:

    Σ_k φ(q)ᵀφ(k) v / Σ_k φ(q)ᵀφ(k) = φ(q)ᵀ (Σ_k φ(k) vᵀ) / φ(q)ᵀ (Σ_k φ(k))

Without a mask both sums are the same for all queries. Under a causal mask they are prefix sums: the state is kept at the
start of each chunk of positions, and within a chunk each query is multiplied with its keys. Everything is in float32 at
least, since sums over all keys lose their small terms in half precision.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise import widen
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.per_head import repeat_heads
from regard.attention.scope import iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score import build_positions
from regard.attention.score.feature_map import FeatureMap
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload

CHUNK = 64
"""Positions of a chunk: quadratic within it, with one state for each."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    if type(request.score) is not FeatureMap:
        return f"needs FeatureMap, got {type(request.score).__name__}"
    normalise: object = request.normalise
    if type(normalise) is not SumToOne:
        return f"needs SumToOne, got {type(normalise).__name__}"
    if request.query.shape[-1] != request.keys.shape[-1]:
        return f"needs queries and keys of one size, got {request.query.shape[-1]} and {request.keys.shape[-1]}"
    if request.weights:
        return "never forms the weights, and they are asked for"
    if request.dropout:
        return "never forms the weights, and some are to be dropped"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    return _covers_scope(request)


def _covers_scope(request: Request) -> str | None:
    for part in iterate_parts(request.scope):
        if type(part) not in (Everywhere, Padding, Causal):
            return f"needs Everywhere, Padding, Causal or several of them joined by &, got {type(part).__name__}"
    if not _is_causal(request) or request.query.shape[2] == 1:
        return None
    if torch.compiler.is_exporting():
        return "cannot be exported with a causal scope and open lengths"
    if isinstance(request.offset, Tensor):
        return "needs one offset for all rows where several queries are causal, got one for each row"
    return None


def count_work(request: Request) -> Work:
    """Products of features and values, and the chunks of a causal mask."""
    workload = measure_workload(request)
    causal = _is_causal(request) and workload.queries > 1
    features = workload.batch * workload.heads * workload.size * (workload.value + 1)
    chunks = -(-workload.queries // CHUNK) if causal else 0
    counts = {
        "products": features * (workload.queries + workload.keys) / 1e6,
        "states": features * chunks / 1e6,
        "within": workload.batch * workload.heads * chunks * CHUNK**2 * (workload.size + workload.value) / 1e6,
        "bytes": (workload.inputs + workload.output) / 1e6,
        "chunks": float(chunks),
        "padded": workload.inputs * workload.padded / 1e6,
        "swept": workload.pairs / 1e6 if workload.statistics else 0.0,
    }
    memory = workload.output + 4 * features * (chunks + 1) + 3 * 4 * workload.inputs // workload.element
    kind = "causal" if causal else "whole"
    return Work(f"{kind}/{workload.precision}/{workload.gradient}", counts, memory)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("linear", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context from sums over the keys; statistics by a sweep that holds the weights of a few queries at a time."""
    with torch.autocast(request.device, enabled=False):  # autocast would take every product to half precision
        context = compute_context(request)
    return Attended(context, statistics=sweep(request))


def compute_context(request: Request) -> Float[Tensor, "batch heads queries value"]:
    """The context, in the precision of the values."""
    assert isinstance(request.score, FeatureMap)
    batch, heads = request.query.shape[:2]
    query = widen(request.score.project(request.query))
    keys, values = widen(repeat_heads(request.keys, heads)), widen(repeat_heads(request.values, heads))
    keep = _merge_padding(request)
    if keep is not None:
        keys = keys.masked_fill(~keep[:, None, :, None], 0.0)
    values = F.pad(values, (0, 1), value=1.0)  # a column of ones beside the values sums the features themselves
    if _is_causal(request) and request.query.shape[2] > 1:
        assert isinstance(request.offset, int)
        everybody = batch, heads, -1, -1
        sum_causally = causal_sums_operator if torch.compiler.is_compiling() else compute_causal_sums
        sums = sum_causally(query, keys.expand(everybody), values.expand(everybody), request.offset)
    else:
        sums = query @ (keys.mT @ values)
    total = sums[..., -1:]
    return (sums[..., :-1] / torch.where(total > 0, total, 1.0)).to(request.values.dtype)


def compute_causal_sums(query: Tensor, keys: Tensor, values: Tensor, offset: int) -> Tensor:
    """Causal sums Σ_k (qᵀ k) v over the keys up to each query; `offset` is the position of the first query.

    The keys before a chunk enter as one state; within it each query is multiplied with each key.
    """
    if offset < 0:  # before the first key there is nothing to see
        blind = query.new_zeros(*query.shape[:2], min(-offset, query.shape[2]), values.shape[3])
        return torch.cat((blind, compute_causal_sums(query[:, :, -offset:], keys, values, 0)), dim=2)
    queries = query.shape[2]
    earlier = keys[:, :, :offset].mT @ values[:, :, :offset]  # visible to every query
    q, k, v = (_chunks(tensor, queries) for tensor in (query, keys[:, :, offset:], values[:, :, offset:]))
    before = torch.cat((earlier[:, :, None], k.mT @ v), dim=2).cumsum(2)[:, :, :-1]
    sums = (q @ before).add_((q @ k.mT).tril_() @ v)
    return sums.flatten(2, 3)[:, :, :queries].contiguous()


# A custom operator, opaque to torch.compile, so that no length is specialised.
causal_sums_operator = torch.library.custom_op("regard::linear_sums", compute_causal_sums, mutates_args=())


@causal_sums_operator.register_fake
def _(query: Tensor, keys: Tensor, values: Tensor, offset: int) -> Tensor:
    return query.new_empty(*query.shape[:3], values.shape[3])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.offset = inputs[3]


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
    """Backward to q, k and v by the same causal sums, for k and v from the last position to the first."""
    query, keys, values = ctx.saved_tensors
    g, q, k, v = (tensor.flip(2) for tensor in (gradient, query, keys, values))
    behind = query.shape[2] + ctx.offset - keys.shape[2]
    return (
        causal_sums_operator(gradient, values, keys, ctx.offset),
        causal_sums_operator(v, g, q, behind).flip(2),
        causal_sums_operator(k, q, g, behind).flip(2),
        None,
    )


causal_sums_operator.register_autograd(_backward, setup_context=_save)


def _chunks(data: Float[Tensor, "batch heads time size"], length: int) -> Float[Tensor, "batch heads chunks chunk size"]:
    """The first `length` positions in chunks, padded with zeros."""
    data = data[:, :, :length]
    chunks = (length + CHUNK - 1) // CHUNK
    return torch.unflatten(F.pad(data, (0, 0, 0, chunks * CHUNK - data.shape[2])), 2, (chunks, CHUNK))


def _merge_padding(request: Request) -> Bool[Tensor, "batch keys"] | None:
    """Mask of the keys independent of the query: all padding masks, and the causal mask of a single query."""
    batch, heads, queries, _ = request.query.shape
    request.scope.check(batch, heads, queries, count := request.keys.shape[2])
    masks = [part.keep for part in iterate_parts(request.scope) if isinstance(part, Padding)]
    if _is_causal(request) and queries == 1:
        device = request.keys.device
        masks.append((build_positions(count, 0, device) <= build_positions(1, request.offset, device)).expand(batch, -1))
    return torch.stack(masks).all(0) if masks else None


def _is_causal(request: Request) -> bool:
    return any(isinstance(part, Causal) for part in iterate_parts(request.scope))
