"""Fused local attention with predicted windows: attend(score=a product, normalise=Softmax or Dimmed, scope=Within).

It serves local_p on a GPU. A program has a tile of queries and reads the tiles of keys from the first of their windows to
the last. Queries are sorted by the positions of their windows, so that those of a tile share most of the keys. No T x S is
formed. The Gaussian is computed in the kernel, and its centre has a gradient.

Luong, Pham and Manning 2015, section 3.2, https://arxiv.org/abs/1508.04025
"""

from functools import reduce

import torch

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.scope import iterate_parts
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score import is_positional
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import flash
from regard.kernels.runtime import tile_work
from regard.kernels.triton.flash.arguments import StatisticsRequest
from regard.kernels.triton.flash.launch_window_sort import compute_bin_width, sort_queries
from regard.kernels.triton.flash.operator import attend


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    windows = [part for part in iterate_parts(request.scope) if isinstance(part, WindowScope)]
    normalise: object = request.normalise
    if len(windows) != 1:
        return "needs the windows of local_p, which no other scope has"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    if is_positional(request.score):
        return f"needs a score that looks at no positions, got {type(request.score).__name__}"
    if request.query.shape[1] != 1:
        return f"needs one head, got {request.query.shape[1]}"
    inner = normalise.inner if isinstance(normalise, GaussianWindow) else request.normalise
    return flash.covers(request._replace(normalise=inner, statistics=()))


def count_work(request: Request) -> Work:
    """Tiles of keys within the windows: about the width of one for each tile of queries."""
    workload = measure_workload(request)
    width = max((part.width for part in iterate_parts(request.scope) if isinstance(part, WindowScope)), default=0)
    share = min(1.0, (2 * width + 65) / max(workload.keys, 1))
    counts = dict(tile_work.count_tiles(workload, 64, 64, share))
    memory = workload.output + 12 * workload.batch * workload.queries
    return Work(f"{workload.precision}/{workload.gradient}", counts, memory)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("predicted_window", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context; statistics by a sweep that holds the weights of a few queries at a time."""
    joined = list(iterate_parts(request.scope))
    within = next(part for part in joined if isinstance(part, WindowScope))
    rest = [part for part in joined if part is not within]
    scope = reduce(lambda left, right: left & right, rest) if rest else Everywhere()
    query, scale = flash.split_scale(request)
    normalise: object = request.normalise
    centres = within.centre.float().contiguous()
    keys = request.keys.shape[2]
    plan = flash.build_plan(request._replace(scope=scope), query, scale)._replace(
        centres=centres,
        bin_width=compute_bin_width(keys),
        **sort_queries(centres, keys)._asdict(),
        width=float(within.width),
        gaussian=(2 if normalise.renormalise else 1) if isinstance(normalise, GaussianWindow) else 0,
    )
    context = attend(query, request.keys, request.values, plan, StatisticsRequest()).context
    return Attended(context, statistics=sweep(request))
