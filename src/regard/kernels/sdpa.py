"""PyTorch's scaled_dot_product_attention: attend(score=any product of two vectors, normalise=Softmax(), scope=any).

On a GPU it has several backends, whose priority `sdpa_backends` sets.
Times: benchmarks/dot.py.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise import visible
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.reference import count_projection
from regard.attention.scope import iterate_parts
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.cosine import Cosine
from regard.attention.score.dot import Dot
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.statistics import BLOCK, sweep
from regard.attention.types import Attended, Request
from regard.attention.workload import Workload, find_gradient, measure_workload
from regard.kernels.runtime import tile_work
from regard.kernels.sdpa_backends import choice
from regard.kernels.sdpa_backends.choice import set_priority

PRODUCTS = (Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl)
CPU_ROWS = 32
"""Queries of a tile of PyTorch's kernel on a CPU."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    if type(request.score) not in PRODUCTS:
        return f"needs one of {', '.join(score.__name__ for score in PRODUCTS)}, got {type(request.score).__name__}"
    normalise: object = request.normalise
    if type(normalise) is not Softmax:
        return f"needs Softmax, got {type(normalise).__name__}"
    query, key = request.query.shape[-1], request.keys.shape[-1]
    if isinstance(request.score, TransformerXl):
        key -= request.score.waves  # concatenated with each key
    if query != key:
        return f"needs queries and keys of one size, got {query} and {key}"
    if request.weights:
        return "never forms the weights, and they are asked for"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    return choice.choose_backends(choice.describe_request(request)).unfused if _has_choice(request) else None


def count_work(request: Request) -> Work:
    """Tiles of one of PyTorch's backends, and the mask of a scope that it does not know."""
    workload = measure_workload(request)
    if _has_choice(request):
        return _count_work_on_gpu(request, workload)
    tasks = workload.batch * workload.heads * -(-workload.queries // CPU_ROWS)
    alone = 1.0 if tasks > 1 else float(torch.get_num_threads())  # one tile of queries has one thread
    causal = choice.is_plainly_causal(request)
    pairs = workload.pairs * (workload.visible if causal else 1.0)
    masked = workload.mask > 0 and not causal
    counts = {
        "products": alone * pairs * (workload.size + workload.value) / 1e6,
        "elements": alone * pairs / 1e6,
        "tasks": float(tasks),
        "bytes": (workload.inputs + workload.output) / 1e6,
        "masked": workload.pairs * masked / 1e6,
        "mask": workload.mask * masked / 1e6,
        "mask_call": float(masked and (workload.windowed or workload.rest or not workload.padded)),
        "padding_call": float(masked),
        "repeated": workload.inputs / 1e6 if workload.key_heads not in (1, workload.heads) else 0.0,
        "dropped": workload.pairs * workload.dropout / 1e6,
        "dropout_call": float(workload.dropout),
        "swept": workload.pairs * workload.size / 1e6 if workload.statistics else 0.0,
        "sweep_call": float(bool(workload.statistics)),
        "measured": len(workload.statistics) * workload.pairs / 1e6,
        "measure_call": float(len(workload.statistics)),
        **count_projection(request),
    }
    memory = workload.output + 4 * workload.batch * workload.heads * workload.queries + 5 * workload.mask * masked
    memory += 4 * workload.pairs * (2 if workload.dropout else 0)  # which PyTorch computes in three stages
    memory += 3 * 4 * min(workload.pairs, BLOCK) if workload.statistics else 0
    kind = "dropped" if workload.dropout else "measured" if workload.statistics else "masked" if masked else "plain"
    return Work(f"{kind}/{workload.precision}/{workload.gradient}", counts, memory)


def _count_work_on_gpu(request: Request, workload: Workload) -> Work:
    properties = choice.describe_request(request)
    if choice.choose_backends(properties).unfused is not None:
        name = "math"
    elif _select_order(properties, request)[0] == choice.CUDNN:
        name = "cudnn"
    else:
        name = "flash" if choice.flash_covers(properties) else "efficient"
    masked = properties.masked and workload.mask > 0
    bias = workload.element * workload.mask * (workload.heads if workload.gradient != "forward" else 1)
    memory = workload.output + 4 * workload.batch * workload.heads * workload.queries + (4 * workload.mask + bias) * masked
    memory += workload.inputs * workload.heads // workload.key_heads if properties.grouped else 0
    memory += 3 * 4 * min(workload.pairs, BLOCK) if workload.statistics else 0
    return Work(f"{name}/{workload.precision}/{workload.gradient}", count_backend_work(workload, properties), memory)


def count_backend_work(workload: Workload, properties: choice.BackendRequest) -> dict[str, float | int]:
    """Counts of a backend on a GPU."""
    masked = properties.masked and workload.mask > 0
    counts = dict(tile_work.count_tiles(workload, 128, 64, workload.visible if properties.causal else 1.0))
    return counts | {
        "masked": counts["elements"] * masked,
        "mask": workload.mask * masked / 1e6,
        "mask_call": float(masked),
        "repeated": workload.inputs / 1e6 if properties.grouped else 0.0,
        "dropped": counts["elements"] * workload.dropout,
        "swept": workload.pairs * workload.size / 1e6 if workload.statistics else 0.0,
        "sweep_call": float(bool(workload.statistics)),
        "measured": len(workload.statistics) * workload.pairs / 1e6,
        "measure_call": float(len(workload.statistics)),
    }


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("sdpa", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context; statistics by a sweep that holds the weights of a few queries at a time."""
    query, scale = project_query(request)
    causal, allowed = False, None
    if choice.is_plainly_causal(request):  # a graph depends on lengths here
        causal = True
    else:
        allowed = request.allowed
    if _has_choice(request):
        mask = None if allowed is None else visible(allowed)
        context = _run_on_gpu(request, query, mask, causal, scale)
    else:
        whole = allowed is None or (not torch.compiler.is_compiling() and zeroes_masked_rows())
        mask = allowed if whole or allowed is None else visible(allowed)
        keys, values = (repeat_heads(side, query.shape[1]) for side in (request.keys, request.values))
        context = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, dropout_p=request.dropout, is_causal=causal, scale=scale
        )
        if whole:
            return Attended(context, statistics=sweep(request))
    if allowed is not None:
        context = context.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    return Attended(context, statistics=sweep(request))


@cache
def zeroes_masked_rows() -> bool:
    """True if PyTorch's function on a CPU gives zero, in value and gradient, to a query without an allowed key."""
    with torch.inference_mode(False), torch.enable_grad():
        for size in (16, 15):
            query, keys, values = sides = [torch.ones(1, 1, 2, size, requires_grad=True) for _ in range(3)]
            mask = torch.tensor([[True, False], [False, False]])
            context = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
            gradients = torch.autograd.grad(context.sum(), sides)
            masked = (context[0, 0, 1], gradients[0][0, 0, 1], gradients[1][0, 0, 1], gradients[2][0, 0, 1])
            if any(bool((part != 0).any()) for part in masked):  # which NaN is as well
                return False
    return True


def ignores_padding(request: Request) -> bool:
    """True where padded keys may hold anything, which `specialise` sees to."""
    return specialise(request) is not None


def specialise(request: Request) -> Callable[[Request], Attended] | None:
    """A function for all requests of this kind that takes the host less time, for plain, causal and padded products."""
    score, scope = request.score, type(request.scope)
    heads = request.query.shape[1]
    if not isinstance(score, ScaledDot | Dot) or request.statistics:
        return None
    if not heads == request.keys.shape[1] == request.values.shape[1]:
        return None
    scale, causal = (score.scale if isinstance(score, ScaledDot) else 1.0), choice.is_plainly_causal(request)
    if scope is Everywhere or causal:
        if _has_choice(request):
            return partial(_run_plain_on_gpu, _select_order(choice.describe_request(request), request), causal, scale)
        return partial(_run_plain, causal, scale)
    if _has_choice(request) or not zeroes_masked_rows() or not request.keys.is_floating_point():
        return None
    if any(type(part) is Padding for part in iterate_parts(request.scope)):
        return partial(_run_padded, find_gradient(request) != "forward", scale)
    return partial(_run_masked, scale)


def _run_plain(causal: bool, scale: float | None, request: Request) -> Attended:
    query, keys, values = request[:3]
    return Attended(
        F.scaled_dot_product_attention(query, keys, values, dropout_p=request.dropout, is_causal=causal, scale=scale)
    )


def _run_plain_on_gpu(order: choice.Order, causal: bool, scale: float | None, request: Request) -> Attended:
    query, keys, values = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in request[:3])
    with set_priority(order):
        return Attended(
            F.scaled_dot_product_attention(query, keys, values, dropout_p=request.dropout, is_causal=causal, scale=scale)
        )


def _run_masked(scale: float | None, request: Request) -> Attended:
    query, keys, values = request[:3]
    mask = request.allowed
    return Attended(
        F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, dropout_p=request.dropout, scale=scale)
    )


def _run_padded(trained: bool, scale: float | None, request: Request) -> Attended:
    """Padded keys on a CPU, which are copied only where they hold something that masking leaves in the result.

    A weight of 0 times a finite value is 0. In a forward the context tells; a backward also multiplies 0 with the keys, and
    the values with dC, so that both have to be finite and not too large.
    """
    query, keys, values = request[:3]
    mask = request.allowed
    if trained and not (is_moderate(keys) and is_moderate(values)):
        keys, values = _zero_padding(request)
    context = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, dropout_p=request.dropout, scale=scale)
    if not trained and not math.isfinite(context.sum().item()):
        keys, values = _zero_padding(request)
        context = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, dropout_p=request.dropout, scale=scale)
    return Attended(context)


def _zero_padding(request: Request) -> list[Tensor]:
    """Keys and values, zero where they are padding."""
    keep = next(part.keep for part in iterate_parts(request.scope) if isinstance(part, Padding))
    for part in iterate_parts(request.scope):
        keep = keep & part.keep if isinstance(part, Padding) else keep
    return [side.masked_fill(~keep[:, None, :, None], 0.0) for side in (request.keys, request.values)]


def is_moderate(data: Tensor) -> bool:
    """True if all numbers are finite, and small enough for products of them: their sum of squares fits into float32.

    Of float64 numbers it has to fit into float64.
    """
    wide = torch.promote_types(data.dtype, torch.float32)
    return math.isfinite(torch.linalg.vector_norm(data.detach(), dtype=wide).item())


def _has_choice(request: Request) -> bool:
    """True if there are several backends; an exported graph leaves the choice to run time."""
    return request.device in choice.DEVICES and not torch.compiler.is_exporting()


def _run_on_gpu(request: Request, query: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """Attention by the fastest correct backend; heads are repeated and rows made dense where the fused ones need it."""
    properties, keys, values, heads = choice.describe_request(request), request.keys, request.values, query.shape[1]
    native_groups = properties.grouped and keys.shape[1] == values.shape[1] and choice.flash_covers(properties)
    if properties.grouped and not native_groups:
        keys, values = (repeat_heads(tensor, heads).expand(-1, heads, -1, -1) for tensor in (keys, values))
    query, keys, values = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, keys, values))
    with set_priority(_select_order(properties, request)):
        return F.scaled_dot_product_attention(
            query,
            keys,
            values,
            attn_mask=mask,
            dropout_p=request.dropout,
            is_causal=causal,
            scale=scale,
            enable_gqa=native_groups,
        )


def _select_order(properties: choice.BackendRequest, request: Request) -> choice.Order:
    """Backend priority: of cuDNN and flash, where both are right, the one that is estimated to be faster."""
    order = choice.choose_backends(properties).order
    if order[0] != choice.CUDNN or not choice.flash_covers(properties) or torch.compiler.is_compiling():
        return order
    if FORCED:
        return choice.FAST if FORCED == ["cudnn"] else choice.SAFE
    workload, device = measure_workload(request), request.query.device
    counts = count_backend_work(workload, properties)
    variants = (f"{name}/{workload.precision}/{workload.gradient}" for name in ("cudnn", "flash"))
    cudnn, flash = (estimate_microseconds("sdpa", Work(variant, counts, 0), device) for variant in variants)
    return choice.FAST if cudnn <= flash else choice.SAFE


FORCED: list[str] = []
"""The backend of a calibration, "cudnn" or "flash", where both are right."""


def project_query(request: Request) -> tuple[Tensor, float | None]:
    """The query's side of the product, and the scale left to the kernel, which applies it at no cost."""
    score = request.score
    if isinstance(score, ScaledDot):
        return request.query, score.scale
    if isinstance(score, Rotary | TransformerXl):
        return score.project(request.query, request.offset), 1.0
    assert isinstance(score, Dot | Bilinear | Cosine)
    return score.project(request.query), 1.0
