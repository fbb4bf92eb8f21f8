"""Fused local attention with predicted windows: attend(score=a product, normalise=Softmax or Dimmed, scope=Within).

It serves local_p on a GPU. A program has a tile of queries and reads the tiles of keys from the first of their windows to
the last. Queries are sorted by the positions of their windows, so that those of a tile share most of the keys. No T x S is
formed. The Gaussian is computed in the kernel, and its centre has a gradient.

Luong, Pham and Manning 2015, section 3.2, https://arxiv.org/abs/1508.04025
"""

from functools import reduce

import torch

from regard.attention.local_window import Dimmed, Within
from regard.attention.scope import parts
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score import positional
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request
from regard.kernels import flash
from regard.kernels.triton.flash.arguments import Asked
from regard.kernels.triton.flash.launch_window_sort import ordered, stretch
from regard.kernels.triton.flash.operator import attend


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    windows = [part for part in parts(request.scope) if isinstance(part, Within)]
    normalise: object = request.normalise
    if len(windows) != 1:
        return "needs the windows of local_p, which no other scope has"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    if positional(request.score):
        return f"needs a score that looks at no positions, got {type(request.score).__name__}"
    if request.query.shape[1] != 1:
        return f"needs one head, got {request.query.shape[1]}"
    inner = normalise.inner if isinstance(normalise, Dimmed) else request.normalise
    return flash.covers(request._replace(normalise=inner, statistics=()))


def run(request: Request) -> Attended:
    """Context; statistics by a sweep that holds the weights of a few queries at a time."""
    joined = list(parts(request.scope))
    within = next(part for part in joined if isinstance(part, Within))
    rest = [part for part in joined if part is not within]
    scope = reduce(lambda left, right: left & right, rest) if rest else Everywhere()
    query, scale = flash.sides(request)
    normalise: object = request.normalise
    centres = within.centre.float().contiguous()
    keys = request.keys.shape[2]
    plan = flash.plan(request._replace(scope=scope), query, scale)._replace(
        centres=centres,
        stretch=stretch(keys),
        **ordered(centres, keys)._asdict(),
        width=float(within.width),
        bell=(2 if normalise.renormalise else 1) if isinstance(normalise, Dimmed) else 0,
    )
    context = attend(query, request.keys, request.values, plan, Asked()).context
    return Attended(context, statistics=sweep(request))
