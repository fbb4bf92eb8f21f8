"""Split-K attention of a decoder step: attend(score=any of flash, normalise=Softmax(), scope=any), few queries.

General kernels have a program for a tile of queries, and one query leaves most of a GPU idle. Here the keys are split over
programs, whose partial results a second kernel combines; query heads that share a key head are one tile, which reads it
once. Under a causal or local mask with an offset, also one per row, only the visible keys of a row are split: a KV cache
may be partly filled. No backward; weights and statistics on request, one number for each key.
"""

import torch

from regard.attention.per_head import repeat_heads
from regard.attention.scope import iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.local import Local
from regard.attention.statistics import measure
from regard.attention.types import Attended, Request
from regard.kernels import flash
from regard.kernels.triton.decode import launch

MIN_KEYS = 32_768
"""Keys from which on `auto` selects it; `regard bench decode` times it elsewhere."""
MAX_QUERIES, MAX_ROWS = 8, 64
"""The most queries, and the most of one program, which has those of all heads that share a key head."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    if request.device in flash.DEVICES and not torch.compiler.is_compiling() and request.query.shape[2] > MAX_QUERIES:
        return f"needs at most {MAX_QUERIES} queries, got {request.query.shape[2]}"  # the common refusal first
    reason = flash.covers(request._replace(weights=False, statistics=()))
    if reason is not None:
        return reason
    if request.dropout:
        return "never drops weights, and some are to be dropped"
    if torch.is_grad_enabled() and flash.needs_gradient(request):
        return "has no gradient, and one is wanted"
    if torch.compiler.is_compiling():
        return "cannot be traced"
    return _covers_rows(request)


def _covers_rows(request: Request) -> str | None:
    _, heads, queries, _ = request.query.shape
    shared = request.keys.shape[1]
    if queries * heads > MAX_ROWS * shared and shared == request.values.shape[1]:
        return f"needs at most {MAX_ROWS} queries for a key head, got {queries * heads // shared}"
    return None


def worthwhile(request: Request) -> bool:
    """True for the sizes timed on an H200: of a half-filled KV cache it takes 0.6 of the time of PyTorch with a mask.

    Where a query sees all keys, PyTorch's kernel takes nine tenths of this one's time.
    """
    partly = any(isinstance(part, Causal | Local) for part in iterate_parts(request.scope))
    half = request.keys.dtype in (torch.float16, torch.bfloat16)
    return partly and half and request.query.shape[2] == 1 and request.keys.shape[2] >= MIN_KEYS


def untimed(request: Request) -> bool:
    """True for one query: "fused" then tries it before PyTorch's kernel and flash."""
    return request.query.shape[2] == 1


def run(request: Request) -> Attended:
    """Context, with weights and statistics on request."""
    query, scale = flash.split_scale(request)
    keys, values = request.keys, request.values
    heads = query.shape[1]
    if keys.shape[1] != values.shape[1]:  # only one of them is grouped, and programs take one group size
        keys, values = (repeat_heads(tensor, heads).expand(-1, heads, -1, -1) for tensor in (keys, values))
    plan = flash.build_plan(request, query, scale)._replace(tiles=select_tiles(request))
    output = launch.run_step(query, keys, values, plan, request.weights or bool(request.statistics))
    if output.weights is None:
        return Attended(output.context)
    allowed = request.allowed if "uniform" in request.statistics else None
    statistics = measure(output.weights, allowed, request.statistics)
    return Attended(output.context, output.weights.to(values.dtype) if request.weights else None, statistics)


def select_tiles(request: Request) -> list[int]:
    """Queries (from the heads), keys, warps and stages of one program; float32 takes more registers."""
    size = max(request.keys.shape[3], request.values.shape[3]) * request.keys.element_size()
    if request.keys.dtype == torch.float32:
        return [16, 16, 4, 2] if size <= 512 else [16, 16, 8, 1]
    return [16, 64, 4, 3] if size <= 256 else [16, 32, 4, 2]
