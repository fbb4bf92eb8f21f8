"""FlashAttention in Triton with statistics: attend(score=a product, T5 or Alibi, normalise=Softmax(), scope=any).

An online softmax: no T x S is in memory. Entropy, largest weight, its key, mean and standard deviation of the position
come out of the same pass; each further top-k key, and the column sums, are one more from the log-sum-exp. T5 and Alibi
add a relative position bias inside the kernel, and T5's has a gradient. Padding, Causal and Local masks are computed in
the kernel, and empty tiles are skipped; any other scope is read from a mask of T x S bytes.

Dao et al. 2022, https://arxiv.org/abs/2205.14135; the online softmax is Milakov and Gimelshein 2018,
https://arxiv.org/abs/1805.02867
"""

import importlib.util

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope import Scope, iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score import build_positions
from regard.attention.score.alibi import Alibi, compute_slopes
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import sdpa
from regard.kernels.runtime import capability, tile_work
from regard.kernels.triton.flash.arguments import ForwardOutput, Plan, StatisticsRequest
from regard.kernels.triton.flash.configs import estimate_smallest_memory
from regard.kernels.triton.flash.operator import attend

INSTALLED = importlib.util.find_spec("triton") is not None
MISSING = "needs Triton, which is not installed; pip install triton"
DEVICES = ("cuda",)
"""Devices that Triton compiles for. Tests add the CPU, on which its interpreter runs."""

SCORES = (*sdpa.PRODUCTS, T5, Alibi)
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_TOP, MAX_SIZE = 16, 256
"""The largest top-k, and the largest head size."""
MAX_HEADS = 65535
"""The most heads of all rows together: the limit of an axis of the grid."""
NO_STATISTICS = StatisticsRequest()
"""The request for no statistics."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    normalise: object = request.normalise
    if type(request.score) not in SCORES:
        return f"needs one of {', '.join(score.__name__ for score in SCORES)}, got {type(request.score).__name__}"
    if type(normalise) is not Softmax:
        return f"needs Softmax, got {type(normalise).__name__}"
    if request.device not in DEVICES:
        return f"needs a GPU, got {request.device}"
    if not INSTALLED:
        return MISSING
    if request.weights:
        return "never forms the weights, and they are asked for"
    if torch.compiler.is_exporting():
        return "cannot be exported"
    return _covers_sizes(request)


def _covers_sizes(request: Request) -> str | None:
    query, keys, values = request.query, request.keys, request.values
    waves = request.score.waves if isinstance(request.score, TransformerXl) else 0  # concatenated with each key
    if query.shape[-1] + waves != keys.shape[-1]:
        return f"needs queries and keys of one size, got {query.shape[-1]} and {keys.shape[-1] - waves}"
    if not (query.dtype == keys.dtype == values.dtype) or query.dtype not in DTYPES:
        kinds = ", ".join(str(tensor.dtype).removeprefix("torch.") for tensor in (query, keys, values))
        return f"needs queries, keys and values in one of float32, float16 and bfloat16, got {kinds}"
    if max(keys.shape[-1], values.shape[-1]) > MAX_SIZE:
        return f"needs heads of at most {MAX_SIZE}, got {max(keys.shape[-1], values.shape[-1])}"
    if 0 in (*query.shape, *keys.shape, *values.shape):
        return "needs a query and a key, and one of them is missing"
    if reason := refuse_heads(request):
        return reason
    if find_largest_top(request) > MAX_TOP:
        return f"keeps the {MAX_TOP} largest weights at most, and top_{find_largest_top(request)} is asked for"
    return capability.find_obstacle(query.device, query.dtype) or _covers_room(request)


def refuse_heads(request: Request) -> str | None:
    """The reason against a batch with more heads than the grid's axis allows, or None."""
    count = request.query.shape[0] * request.query.shape[1]
    return f"needs at most {MAX_HEADS} heads in a batch, got {count}" if count > MAX_HEADS else None


def needs_gradient(request: Request) -> bool:
    """True if any input of the context requires a gradient."""
    score: object = request.score
    parameters = list(score.parameters()) if isinstance(score, nn.Module) else []
    return any(tensor.requires_grad for tensor in (*request[:3], *parameters))


def _covers_room(request: Request) -> str | None:
    """The reason if even the smallest tiles of forward or backward exceed shared memory, as wide heads on an old GPU."""
    backward_program = "write_dbias" if isinstance(request.score, T5) else "write_dkv"
    program = backward_program if torch.is_grad_enabled() else "forward"
    least, most = (
        estimate_smallest_memory(program, request.keys.shape[3], request.values.shape[3]),
        capability.find_shared_memory(request.query.device),
    )
    if least > most:
        return f"needs {least >> 10} KiB of shared memory for heads of this size, got a GPU with {most >> 10}"
    return None


def suits_graph(request: Request) -> bool:
    """True where PyTorch's kernel would need a second pass, a mask for a sliding window, or the reference."""
    if request.statistics or sdpa.covers(request) is not None:
        return True
    return any(isinstance(part, Local | Padding) for part in iterate_parts(request.scope))


def ignores_padding(request: Request) -> bool:
    """True: keys and values of padding are not read."""
    return True


def count_work(request: Request) -> Work:
    """Tiles of queries and keys between the bounds of causal and local masks."""
    workload = measure_workload(request)
    rows, columns = select_tiles(request.query, request.values)[:2]
    counts = dict(tile_work.count_tiles(workload, rows, columns, workload.visible))
    counts |= tile_work.count_extras(workload, counts["elements"])
    counts["bias"] = counts["elements"] * isinstance(request.score, T5 | Alibi)
    memory = workload.output + 4 * workload.batch * workload.heads * workload.queries
    memory += workload.mask if workload.rest else 0
    return Work(f"{workload.precision}/{workload.gradient}", counts, memory)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("flash", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context and statistics."""
    output = run_forward(request)
    return Attended(output.context, statistics=collect_statistics(request, output))


def run_forward(request: Request) -> ForwardOutput:
    """All outputs of the forward, including the log-sum-exp."""
    query, scale = split_scale(request)
    keys, values = request.keys, request.values
    heads = query.shape[1]
    if keys.shape[1] != values.shape[1]:  # one of them belongs to groups of heads, and programs know one kind of group
        keys, values = (repeat_heads(tensor, heads).expand(-1, heads, -1, -1) for tensor in (keys, values))
    return attend(query, keys, values, build_plan(request, query, scale), list_statistics(request))


def split_scale(request: Request) -> tuple[Float[Tensor, "batch heads queries dim"], float]:
    """The query's side of the product, and the scale left to the kernel."""
    score = request.score
    if isinstance(score, T5):
        return request.query, score.scale
    if isinstance(score, ScaledDot | Alibi):
        return request.query, ScaledDot(score.scale).factor(request.query)
    return sdpa.project_query(request)[0].to(request.keys.dtype), 1.0


def build_plan(request: Request, query: Float[Tensor, "batch heads queries dim"], scale: float) -> Plan:
    """Arguments of the kernel: the scope's known parts, and a mask for the rest."""
    batch, heads, queries, _ = query.shape
    request.scope.check(batch, heads, queries, request.keys.shape[2])
    known = list(iterate_parts(request.scope))
    windows = [part.window for part in known if isinstance(part, Local)]
    varies = isinstance(request.offset, Tensor)
    device = request.query.device
    return Plan(
        bias=build_bias(request),
        centres=None,
        keep=merge_padding(known),
        mask=build_mask(request, known),
        offsets=request.offset.to(device).contiguous() if isinstance(request.offset, Tensor) else None,
        seed=torch.randint(2**31 - 1, (1,), device=device) if request.dropout else None,
        offset=0 if varies else request.offset,  # type: ignore[arg-type]
        window=min(windows) if windows else -1,
        causal=any(isinstance(part, Causal) for part in known),
        gaussian=0,
        width=1.0,
        scale=scale,
        dropout=request.dropout,
        tiles=select_tiles(query, request.values),
    )


def select_tiles(query: Tensor, values: Tensor) -> list[int]:
    """Queries, keys, warps and stages of one program, sized for registers and shared memory.

    Float32 is multiplied without tensor cores, from registers: larger tiles than these would spill.
    """
    size = max(query.shape[3], values.shape[3]) * query.element_size()
    if query.dtype == torch.float32:
        return [64, 32, 8, 1] if size <= 256 else [32, 32, 8, 1] if size <= 512 else [16, 32, 8, 1]
    if size <= 128:
        return [64, 64, 4, 3]
    return [64, 64, 4, 2] if size <= 256 else [32, 32, 4, 1] if size > 512 else [64, 32, 4, 2]


def build_bias(request: Request) -> Float[Tensor, "rows bias_heads span"] | None:
    """T5's or Alibi's bias for each relative position key - query, the lowest first."""
    score, (queries, keys) = request.score, (request.query.shape[2], request.keys.shape[2])
    if not isinstance(score, T5 | Alibi):
        return None
    device = request.query.device
    positions = build_positions(queries + keys - 1, 1 - queries - request.offset, device)
    if isinstance(score, T5):
        return score.b[:, score.bucket(positions)].transpose(0, 1).float().contiguous()
    slopes = torch.tensor(compute_slopes(request.query.shape[1]), device=device)
    return -slopes[:, None] * positions.abs()[:, None]


def merge_padding(known: list[Scope]) -> Bool[Tensor, "batch keys"] | None:
    """The intersection of all padding masks, contiguous within a row."""
    masks = [part.keep for part in known if isinstance(part, Padding)]
    return masks[0].contiguous() if len(masks) == 1 else torch.stack(masks).all(0) if masks else None


def build_mask(request: Request, known: list[Scope]) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
    """The mask of the other scopes, materialised once."""
    others = [part for part in known if type(part) not in (Everywhere, Padding, Causal, Local)]
    if not others:
        return None
    rest = others[0]
    for part in others[1:]:
        rest = rest & part
    allowed = request._replace(scope=rest).allowed
    return None if allowed is None else allowed.contiguous()


def list_statistics(request: Request) -> StatisticsRequest:
    """The statistics that the kernel has to write."""
    if not request.statistics:
        return NO_STATISTICS
    names = set(request.statistics)
    return StatisticsRequest(
        peak=bool(names & {"max", "argmax"}),
        entropy="entropy" in names,
        moments=2 if "spread" in names else int("mean_position" in names),
        received="received" in names,
        uniform="uniform" in names,
        top=min(find_largest_top(request), request.keys.shape[2]),
    )


def find_largest_top(request: Request) -> int:
    """The largest k of the requested top-k statistics."""
    return max([0, *(int(name[4:]) for name in request.statistics if name.startswith("top_"))])


def collect_statistics(request: Request, output: ForwardOutput) -> dict[str, Tensor]:
    """The requested statistics by name."""
    if not request.statistics:
        return {}
    measured = dict(zip(("entropy", "max", "mean_position", "spread"), output.measured, strict=False))
    measured |= {"argmax": output.argmax, "received": output.received, "uniform": output.uniform}
    values: dict[str, Tensor] = {}
    for name in request.statistics:
        if name.startswith("top_"):
            values[name] = output.best[..., : int(name[4:])]
            values[f"{name}_keys"] = output.best_keys[..., : int(name[4:])]
        else:
            values[name] = measured[name]
    return values
