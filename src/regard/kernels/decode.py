"""Split-K attention of a decoder step: attend(score=any of flash, normalise=Softmax(), scope=any), few queries.

General kernels have a program for a tile of queries, and one query leaves most of a GPU idle. Here the keys are split over
programs, whose partial results a second kernel combines; query heads that share a key head are one tile, which reads it
once. Under a causal or local mask with an offset, also one per row, only the visible keys of a row are split: a KV cache
may be partly filled. No backward; weights and statistics on request, one number for each key.
"""

import torch

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.per_head import repeat_heads
from regard.attention.statistics import measure
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import flash
from regard.kernels.runtime import tile_work
from regard.kernels.triton.decode import launch

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


def ignores_padding(request: Request) -> bool:
    """True: keys and values of padding are not read."""
    return True


def count_work(request: Request) -> Work:
    """Keys and values of each head read once, by programs that share them."""
    workload = measure_workload(request)
    read = workload.batch * workload.key_heads * workload.keys * workload.visible * (workload.size + workload.value)
    counts = {
        "read": read * workload.element / 1e6,
        "heads": workload.batch * workload.key_heads / tile_work.count_multiprocessors(),
        "depth": workload.keys * workload.visible / 1e3,
        "written": workload.pairs / 1e6 if workload.weights or workload.statistics else 0.0,
        "mask_call": float(workload.rest),
        "mask": workload.mask / 1e6 if workload.rest else 0.0,
        "measured": float(len(workload.statistics)),
    }
    memory = 2 * workload.output + (4 * workload.pairs if workload.weights or workload.statistics else 0)
    return Work(f"{workload.precision}/{workload.gradient}", counts, memory + (workload.mask if workload.rest else 0))


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("decode", count_work(request), request.query.device)


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
