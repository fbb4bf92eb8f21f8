"""Fused sparsemax and entmax attention: attend(score=a product, normalise=Sparsemax() or Entmax(), scope=any).

Triton finds the threshold of every query in a few passes over the keys, recomputing the scores tile by tile; one more
reads the values, except for tiles whose weights are all zero. The backward recomputes the weights from the threshold. No
T x S is in memory. Any alpha up to 3, one per head where it is learned, with its gradient. Scopes are flash's: Padding,
Causal and Local masks are computed in the kernel, and any other scope is a mask of T x S bytes.

Martins and Astudillo 2016, https://arxiv.org/abs/1602.02068; Peters, Niculae and Martins 2019,
https://arxiv.org/abs/1905.05702. Unlike the papers, no score is sorted, and Newton's step replaces bisection where it
converges from below.
"""

import torch
from torch import Tensor

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.per_head import repeat_heads
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import flash, sdpa
from regard.kernels.runtime import tile_work
from regard.kernels.triton.entmax.launch import Alpha
from regard.kernels.triton.entmax.operator import attend

MAX_ALPHA = 3.0
"""The largest alpha: at 4 weights were off by 3e-5 and at 6 by 3e-3, where the stages stay within 2e-7."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    normalise: object = request.normalise
    if type(request.score) not in sdpa.PRODUCTS:
        return f"needs one of {', '.join(score.__name__ for score in sdpa.PRODUCTS)}, got {type(request.score).__name__}"
    if type(normalise) is not Sparsemax and type(normalise) is not Entmax:
        return f"needs Sparsemax or Entmax, got {type(normalise).__name__}"
    heads = request.query.shape[1]
    if isinstance(normalise, Entmax) and normalise.raw is not None and len(normalise.raw) not in (1, heads):
        return f"needs one alpha or one for each of {heads} heads, got {len(normalise.raw)}"
    if isinstance(normalise, Entmax) and normalise.fixed > MAX_ALPHA:
        return f"needs alpha up to {MAX_ALPHA}, beyond which no threshold in float32 is exact, got {normalise.fixed}"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    return flash.covers(request._replace(normalise=Softmax(), statistics=()))


def ignores_padding(request: Request) -> bool:
    """True: keys and values of padding are not read."""
    return True


def count_work(request: Request) -> Work:
    """Several passes over the keys for the threshold, and one over the values."""
    workload = measure_workload(request)
    rows, columns = select_tiles(request.query, request.values)[:2]
    counts = dict(tile_work.count_tiles(workload, rows, columns, workload.visible))
    counts |= tile_work.count_extras(workload._replace(statistics=()), counts["elements"])
    counts["swept"] = workload.pairs / 1e6 if workload.statistics else 0.0
    memory = workload.output + 12 * workload.batch * workload.heads * workload.queries
    memory += workload.mask if workload.rest else 0
    normalise: object = request.normalise
    kind = "sparsemax" if type(normalise) is Sparsemax else "entmax"
    return Work(f"{kind}/{workload.precision}/{workload.gradient}", counts, memory)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("entmax", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context; statistics by a sweep that holds the weights of a few queries at a time."""
    query, scale = flash.split_scale(request)
    keys, values = request.keys, request.values
    heads = query.shape[1]
    if keys.shape[1] != values.shape[1]:  # only one of them is grouped, and programs take one group size
        keys, values = (repeat_heads(tensor, heads).expand(-1, heads, -1, -1) for tensor in (keys, values))
    plan = flash.build_plan(request, query, scale)._replace(tiles=select_tiles(query, values))
    return Attended(attend(query, keys, values, plan, build_alpha(request)), statistics=sweep(request))


def select_tiles(query: Tensor, values: Tensor) -> list[int]:
    """Queries, keys, warps and stages of one program, sized for the registers of the backward.

    Float32, without tensor cores, takes many more of them for a matrix product.
    """
    size = max(query.shape[3], values.shape[3])
    if query.dtype == torch.float32:
        return [32, 32, 8, 1] if size <= 128 else [16, 32, 8, 1]
    return [64, 64, 4, 3] if size <= 64 else [64, 32, 8, 2] if size <= 128 else [32, 32, 8, 2]


def build_alpha(request: Request) -> Alpha:
    """The alpha of the normaliser; sparsemax is alpha 2."""
    normalise: object = request.normalise
    if not isinstance(normalise, Entmax):
        return Alpha(2.0)
    if normalise.raw is None:
        return Alpha(normalise.fixed)
    return Alpha(normalise.fixed, 1 + normalise.raw.float().sigmoid())
