"""Attention weights on a GPU, of all or of selected queries: attend(what flash covers, weights=True), without gradients.

The context is flash's. The weights are recomputed from its log-sum-exp and written once, and for selected queries, heads
or keys nothing else is formed:

    a_k = exp(score(q, k) - log Σ_j exp score(q, j))

`chosen` also takes the additive score, and computes the log-sum-exp itself where it is not known. Requests that no kernel
covers, predicted windows or a sparse normaliser, run the first two stages for one selected query after the other.
Times: benchmarks/flash.py.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise.softmax import Softmax
from regard.attention.score.additive import Additive
from regard.attention.score.concat import Concat
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import flash
from regard.kernels.runtime import capability
from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.arguments import Selection

TILES = [16, 64, 4, 2]
"""Queries, keys, warps and stages of one program: selected queries are few."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    if not request.weights:
        return "gives weights, and none are asked for"
    if torch.is_grad_enabled() and flash.needs_gradient(request):
        return "gives weights that have no gradient, and one is wanted"
    if torch.compiler.is_compiling():
        return "cannot be traced"
    return flash.covers(request._replace(weights=False))


def ignores_padding(request: Request) -> bool:
    """True: keys and values of padding are not read."""
    return True


def count_work(request: Request) -> Work:
    """The pass of flash, and one that writes the weights."""
    workload = measure_workload(request)
    work = flash.count_work(request)
    written = workload.pairs * (4 + workload.element)
    counts = {**work.counts, "written": written / 1e6}
    return Work(work.variant, counts, work.memory + written)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("weights", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context and statistics of flash, and all weights in the precision of the values."""
    output = flash.run_forward(request)
    selection = Selection(torch.arange(request.query.shape[2], device=request.query.device), lse=output.lse)
    weights = _weigh(request, selection).to(request.values.dtype)
    return Attended(output.context, weights, flash.collect_statistics(request, output))


def covers_selected(request: Request) -> str | None:
    """None when the kernel computes selected weights of this request, else the reason it does not."""
    score, normalise = request.score, request.normalise
    if type(score) is not Additive and not (type(score) is Concat and score.tanh):
        return flash.covers(request._replace(weights=False, statistics=()))
    if request.device not in flash.DEVICES:
        return f"needs a GPU, got {request.device}"
    if type(normalise) is not Softmax:
        return f"needs Softmax, got {type(normalise).__name__}"
    if request.query.dtype not in flash.DTYPES:
        return f"needs queries in float32, float16 or bfloat16, got {str(request.query.dtype).removeprefix('torch.')}"
    if 0 in (*request.query.shape, *request.keys.shape):
        return "needs a query and a key, and one of them is missing"
    if not flash.INSTALLED:
        return flash.MISSING
    return flash.refuse_heads(request) or capability.find_obstacle(request.query.device, request.query.dtype)


@torch.no_grad()
def select_weights(
    request: Request, rows: list[int], heads: list[int] | None = None, keys: range | None = None
) -> Float[Tensor, "batch chosen_heads rows chosen_keys"]:
    """The float32 weights of selected queries, of all heads or selected ones, and of all keys or a range of them."""
    for name, indices, count in (("queries", rows, request.query.shape[2]), ("heads", heads or [], request.query.shape[1])):
        beyond = [index for index in indices if not 0 <= index < count]
        if beyond:
            raise ValueError(f"there are {count} {name}, counted from 0, and no number {beyond[0]}; choose among these")
    length = request.keys.shape[2]
    usual = keys is None or (isinstance(keys, range) and keys.step == 1)
    if not usual or (keys is not None and not 0 <= keys.start <= keys.stop <= length):
        raise ValueError(
            f"keys needs to be a range of the {length} there are, one by one, got {keys}; range(0, {length}) is all"
        )
    device = request.query.device
    head_indices = None if heads is None else torch.tensor(heads, device=device, dtype=torch.int64)
    if covers_selected(request) is not None:
        key_range = range(length) if keys is None else keys
        weights = _compute_weights_by_query(request, rows)[..., key_range.start : key_range.stop]
        return weights if head_indices is None else weights[:, head_indices]
    return _weigh(request, Selection(torch.tensor(rows, device=device, dtype=torch.int64), head_indices, keys=keys))


def _compute_weights_by_query(request: Request, rows: list[int]) -> Tensor:
    """The first two stages for one query after the other."""
    kind: object = request.normalise
    if getattr(kind, "random", False) and getattr(kind, "training", False):
        name = type(kind).__name__
        raise ValueError(
            f"the weights of chosen queries cannot be found again: {name} draws others each time; eval() stops it"
        )
    rows_of_weights = [request.query.new_empty(*request.query.shape[:2], 0, request.keys.shape[2], dtype=torch.float32)]
    for row in rows:
        part = request._replace(query=request.query[:, :, row, None], offset=request.offset + row)
        some = getattr(request.normalise, "some", None)  # of a normaliser with parameters per query
        normalise = request.normalise if some is None else some(slice(row, row + 1))
        weights = normalise(part.scores(), part.allowed)
        rows_of_weights.append((weights if isinstance(weights, Tensor) else weights[0]).float())
    return torch.cat(rows_of_weights, dim=2)


def _weigh(request: Request, which: Selection) -> Tensor:
    if isinstance(request.score, Additive | Concat):
        query, scale, v = request.score.project(request.query), 1.0, request.score.v.weight[:, 0].contiguous()
    else:
        (query, scale), v = flash.split_scale(request), None
    plan = flash.build_plan(request._replace(dropout=0.0), query, scale)._replace(tiles=TILES)
    return launch.compute_weights(query, request.keys, v, plan, which)
