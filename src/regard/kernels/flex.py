"""FlexAttention: attend(score=any product of two vectors, normalise=Softmax(), scope=any dataclass).

A sparse mask has whole empty tiles, which are skipped: document masks of packed rows, block-diagonal masks, image
neighbourhoods, windows with global tokens. It is compiled once for each structure of a scope, with dynamic lengths. Where
compilation fails, dispatch falls back to the next kernel with a warning.

Dong et al. 2024, https://arxiv.org/abs/2412.05496
Times: benchmarks/dot.py.
"""

import warnings
from collections.abc import Hashable

import torch

from regard.attention import dispatch
from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope import iterate_parts
from regard.attention.scope.document import Document
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import flash, sdpa
from regard.kernels.flex_block_mask import blocks, compiled
from regard.kernels.runtime import tile_work

MIN_SIZE = 16
"""The smallest head of FlexAttention's kernels."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    reason = _covers_stages(request) or flash.covers(request)
    if reason is not None:
        return reason
    sizes = request.keys.shape[-1], request.values.shape[-1]
    if min(sizes) < MIN_SIZE:
        return f"needs heads of at least {MIN_SIZE}, got {min(sizes)}"
    try:
        key = build_cache_key(request)
    except TypeError as error:
        return str(error)
    if blocks.is_capturing() and key not in compiled.PROGRAMS:
        return "is compiled first, which cannot be part of a CUDA graph"
    return compiled.find_refusal(key)


def _covers_stages(request: Request) -> str | None:
    if type(request.score) not in sdpa.PRODUCTS:
        return f"needs one of {', '.join(score.__name__ for score in sdpa.PRODUCTS)}, got {type(request.score).__name__}"
    normalise: object = request.normalise
    if type(normalise) is not Softmax:
        return f"needs Softmax, got {type(normalise).__name__}"
    if request.statistics:
        return "gives no statistics, and some are asked for"
    if request.dropout:
        return "never drops weights, and some are to be dropped"
    if torch.compiler.is_compiling():
        return "is compiled by itself, and never as part of something else"
    return None


def build_cache_key(request: Request) -> Hashable:
    """Cache key of the compiled kernel of a request."""
    query, keys, values = request.query, request.keys, request.values
    moved = "rows" if isinstance(request.offset, torch.Tensor) else bool(request.offset)
    gradient = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, keys, values))
    shapes = query.shape[1], keys.shape[1], values.shape[1], keys.shape[3], values.shape[3]
    scale = request.score.scale if isinstance(request.score, ScaledDot) else 1.0
    return blocks.describe_structure(request.scope), moved, query.dtype, gradient, shapes, scale, query.device


def count_work(request: Request) -> Work:
    """Tiles that are not empty, and the evaluation of a scope that has tensors."""
    return _count_work(request, _find_share(request))


def _count_work(request: Request, share: float | int) -> Work:
    workload = measure_workload(request)
    counts = dict(tile_work.count_tiles(workload, blocks.TILE, blocks.TILE, share))
    varies = bool(blocks.collect_mask_tensors(request))
    counts["evaluated"] = workload.batch * workload.queries * workload.keys / 1e6 * varies
    counts["strips"] = -(-workload.queries // (blocks.TILE * blocks.STRIP)) * varies
    memory = workload.output + 4 * workload.batch * workload.heads * workload.queries
    return Work(f"{workload.precision}/{workload.gradient}", counts, memory)


def _find_share(request: Request) -> float | int:
    """Fraction of the tiles that are not empty; an estimate where it would need a synchronisation."""
    workload = measure_workload(request)
    known = blocks.build_cache_key(request) in blocks.CACHE
    if blocks.collect_mask_tensors(request):
        documents = any(isinstance(part, Document) for part in iterate_parts(request.scope))
        return workload.visible / (4 if documents else 1)
    if not known and (blocks.is_capturing() or _is_beaten(request)):
        return workload.visible
    return blocks.find_block_mask(request).share or workload.visible


def _is_beaten(request: Request) -> bool:
    """True if flash, which covers all that is covered here, is faster than one tile for each query."""
    least = estimate_microseconds("flex", _count_work(request, 0.0), request.query.device)
    return flash.cost(request) <= least


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one.

    Infinite for scopes whose empty tiles flash skips as well: it needs no compilation of seconds.
    """
    if not measure_workload(request).rest:
        return float("inf")
    return estimate_microseconds("flex", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context by FlexAttention or, where it cannot be compiled, by the next kernel."""
    from torch._dynamo.exc import FailOnRecompileLimitHit, TorchDynamoException  # slow to import

    key = build_cache_key(request)
    try:
        return Attended(_run_compiled(request, key))
    except (TorchDynamoException, FailOnRecompileLimitHit, compiled.UnfusedError) as error:
        first = str(error.__cause__ or error).strip().partition("\n")[0]
        compiled.REFUSED[key] = f"could not be compiled for this scope: {first}"
        dispatch.forget_decisions()
    kernel = dispatch.select_kernel(request, "fused")  # flash covers all that is covered here
    assert kernel is not None
    name = next((name for name, registered in dispatch.KERNELS.items() if registered is kernel), "another kernel")
    warnings.warn(f"flex {compiled.REFUSED[key]}; {name} takes it from now on", RuntimeWarning, stacklevel=2)
    return kernel.run(request)


def _run_compiled(request: Request, key: Hashable) -> torch.Tensor:
    query, scale = sdpa.project_query(request)
    keys, values = request.keys, request.values
    if keys.shape[1] != values.shape[1]:  # FlexAttention takes one group size
        keys, values = (repeat_heads(tensor, query.shape[1]).expand(-1, query.shape[1], -1, -1) for tensor in (keys, values))
    grouped = keys.shape[1] != query.shape[1]
    return compiled.compile_program(key)(
        query.to(keys.dtype), keys, values, blocks.find_block_mask(request).mask, scale, grouped
    )
