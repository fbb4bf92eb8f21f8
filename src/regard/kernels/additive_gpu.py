"""Fused additive attention in Triton: attend(score=Additive or Concat, normalise=any, scope=any) on a GPU.

With Softmax nothing of queries x keys x hidden units exists in memory, and queries x keys only for a few heads at a time,
or for all where the weights are requested; the backward recomputes them from the saved log-sum-exp, unless the scores are
few enough to be saved.
Padding, causal and local masks are computed in the kernel; any other is packed into a bitmask, which is read for partial
tiles; empty tiles are skipped. A decoder step has one query and splits the keys over the GPU (split-K). With other
normalisers the scores alone come from the kernel. Location-sensitive attention is covered too, since its location
features are part of the keys.
Times: benchmarks/additive.py.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attend import run_reference
from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.concat import Concat
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels.runtime import capability, tile_work

if TYPE_CHECKING:
    from regard.kernels.triton.additive.arguments import Dropout, MaskArguments

DEVICES = ("cuda",)
"""Devices that Triton compiles for. Tests add the CPU, on which its interpreter runs."""

INSTALLED = find_spec("triton") is not None
"""True if Triton is installed; it is imported when the kernel first runs."""

PRECISIONS = (torch.float16, torch.bfloat16, torch.float32)

MAX_ELEMENTS = 2**31 - 2**24
"""The most elements of a head after padding to whole tiles: offsets are 32-bit."""

LEAST = 64
"""Queries of a tile, whose scores of all keys need 32-bit offsets too, and the padding of the hidden units."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    score = request.score
    if type(score) is not Additive and type(score) is not Concat:
        return f"needs Additive or Concat, got {type(score).__name__}"
    if isinstance(score, Concat) and not score.tanh:
        return "needs Concat with its tanh, got it without"
    if request.device not in DEVICES:
        return f"needs a GPU, got {request.device}"
    if not INSTALLED:
        return "needs triton, which is not installed; pip install triton"
    for data in (request.query, request.keys, request.values):
        if data.dtype not in PRECISIONS:
            return f"needs half or single precision, got {str(data.dtype).removeprefix('torch.')}"
    if torch.compiler.is_exporting():
        return "cannot be exported"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    reason = _covers_sizes(request)
    if reason is not None:
        return reason
    kinds = *(data.dtype for data in request[:3]), find_output_dtypes(request, request.query)[0]
    return capability.find_obstacle(request.query.device, torch.bfloat16 if torch.bfloat16 in kinds else torch.float32)


def _covers_sizes(request: Request) -> str | None:
    hidden, values = request.keys.shape[3], request.values.shape[3]
    if not (hidden and values):
        return f"needs a hidden unit and a dimension of the values at least, got {hidden} and {values}"
    longest = max(request.query.shape[2], request.keys.shape[2])
    if longest * max(hidden, LEAST) >= MAX_ELEMENTS:
        return (
            f"needs fewer than {MAX_ELEMENTS} numbers in a head, of {LEAST} units at least, got {longest} rows of {hidden}"
        )
    return None


def count_work(request: Request) -> Work:
    """Reciprocals of all hidden units, in tiles, and the scores of all pairs where the normaliser is not fused."""
    workload = measure_workload(request)
    rows, columns = 32, 64
    programs = workload.batch * workload.heads * -(-workload.queries // rows) * -(-workload.keys // columns)
    alone = workload.queries == 1
    hidden = tile_work.round_up(workload.size, 16)
    pairs = workload.pairs if alone else programs * rows * columns
    normalise: object = request.normalise
    fused = type(normalise) is Softmax
    counts = {
        "hidden": pairs * hidden * workload.visible / 1e6,
        "depth": -(-programs // tile_work.count_multiprocessors()) * hidden / 64 * workload.visible,
        "elements": pairs / 1e6,
        "products": pairs * workload.value / 1e6,
        "chunks": max(0.0, 4 * workload.pairs / max(workload.inputs, 1) - 1),
        "bytes": (workload.inputs + workload.output) / 1e6,
        **tile_work.count_extras(workload, pairs / 1e6),
    }
    scores = 4 * workload.pairs * (1 if workload.gradient == "forward" else 3)
    memory = workload.output + (min(scores, 2 * workload.inputs) if fused and not workload.weights else scores)
    kind = "step" if alone else "tiles"
    return Work(f"{kind}/{'softmax' if fused else 'scores'}/{workload.precision}/{workload.gradient}", counts, memory)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("additive_gpu", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Run one operator for Softmax; the three stages with tiled scores for any other normaliser."""
    from regard.kernels.triton.additive.operator import attention

    assert isinstance(request.score, Additive | Concat)
    tiled = request._replace(score=TiledScore(request.score))
    normalise: object = request.normalise
    if type(normalise) is not Softmax:
        return run_reference(tiled)
    query = request.score.project(request.query)
    context, shares = find_output_dtypes(request, query)
    output, weights = attention(
        query,
        request.keys,
        request.values,
        request.score.v.weight[:, 0],
        build_mask_arguments(request),
        build_dropout(request),
        context,
        shares if request.weights else None,
    )
    return Attended(output, weights, statistics=sweep(tiled))


@dataclass(frozen=True)
class TiledScore:
    """Additive or Concat score, computed in tiles."""

    inner: Additive | Concat

    def prepare(self, key: Tensor) -> Tensor:
        """The key's side of the wrapped score."""
        return self.inner.prepare(key)

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys hidden"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        from regard.kernels.triton.additive.operator import scores

        return scores(self.inner.project(query), prepared, self.inner.v.weight[:, 0])


def find_output_dtypes(request: Request, query: Tensor) -> tuple[torch.dtype, torch.dtype]:
    """Dtypes of context and weights: autocast takes matrix products to half precision and a softmax to float32."""
    if torch.is_autocast_enabled(request.device):
        return torch.get_autocast_dtype(request.device), torch.float32
    return request.values.dtype, query.dtype


def build_mask_arguments(request: Request) -> "MaskArguments":
    """The scope as kernel arguments: padding mask, window bounds, and a bitmask for the rest."""
    from regard.kernels.triton.additive.arguments import UNBOUNDED, MaskArguments
    from regard.kernels.triton.additive.bitmask import find_bitmask

    batch, heads, queries, _ = request.query.shape
    request.scope.check(batch, heads, queries, request.keys.shape[2])
    keep, behind, ahead, rest = None, UNBOUNDED, UNBOUNDED, None
    for part in iterate_parts(request.scope):
        if type(part) is Padding:
            keep = part.keep if keep is None else keep & part.keep
        elif type(part) is Causal:
            ahead = 0 if ahead > 0 else ahead
        elif type(part) is Local:
            behind, ahead = min(behind, part.window), min(ahead, part.window)
        elif type(part) is not Everywhere:
            rest = part if rest is None else rest & part
    bitmask = None if rest is None else find_bitmask(request._replace(scope=rest))
    bits, kinds = (None, None) if bitmask is None else bitmask
    offset = request.offset
    if isinstance(offset, Tensor):
        return MaskArguments(keep, bits, kinds, offset.to(request.query.device).contiguous(), 0, behind, ahead)
    return MaskArguments(keep, bits, kinds, None, offset, behind, ahead)


def build_dropout(request: Request) -> "Dropout":
    """Dropout with a seed sampled on the device, which avoids synchronisation and allows CUDA graph replay."""
    from regard.kernels.triton.additive.arguments import Dropout

    if not request.dropout:
        return Dropout()
    return Dropout(request.dropout, torch.randint(2**31 - 1, (1,), device=request.query.device))
