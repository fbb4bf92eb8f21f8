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
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope import iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Request
from regard.kernels import flash, sdpa
from regard.kernels.flex_block_mask import blocks, compiled

MIN_SIZE = 16
"""The smallest head of FlexAttention's kernels."""
SKIPPED = (Everywhere, Padding, Causal, Local)
"""Scopes whose empty tiles our `flash` skips as well: on an H200 a window of +-128 at 8192 takes it five sixths of the
time, and less than nine tenths with the backward.
"""
MAX_SHARE, MIN_LENGTH = 0.5, 1024
"""The largest fraction of non-empty tiles, and the fewest queries and keys, for which it pays."""


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


def worthwhile(request: Request) -> bool:
    """True where it skips tiles that other kernels read, or read more slowly."""
    if not is_long(request):
        return False
    if blocks.collect_mask_tensors(request):
        return any(isinstance(part, Document) for part in iterate_parts(request.scope))
    if blocks.is_capturing() and blocks.build_cache_key(request) not in blocks.CACHE:
        return False  # the fraction would need a synchronisation
    share = blocks.find_block_mask(request).share
    return share is not None and share <= MAX_SHARE


def is_long(request: Request) -> bool:
    """True if there are enough queries and keys for it to pay with this scope."""
    if min(request.query.shape[2], request.keys.shape[2]) < MIN_LENGTH:
        return False
    return not all(isinstance(part, SKIPPED) for part in iterate_parts(request.scope))


def run(request: Request) -> Attended:
    """Context by FlexAttention or, where it cannot be compiled, by the next kernel."""
    from torch._dynamo.exc import FailOnRecompileLimitHit, TorchDynamoException  # slow to import

    key = build_cache_key(request)
    try:
        return Attended(_run_compiled(request, key))
    except (TorchDynamoException, FailOnRecompileLimitHit, compiled.UnfusedError) as error:
        first = str(error.__cause__ or error).strip().partition("\n")[0]
        compiled.REFUSED[key] = f"could not be compiled for this scope: {first}"
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
