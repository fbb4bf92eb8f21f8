"""PyTorch's scaled_dot_product_attention: attend(score=any product of two vectors, normalise=Softmax(), scope=any).

On a GPU it has several backends, whose priority `sdpa_backends` sets.
Times: benchmarks/dot.py.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.normalise import visible
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.cosine import Cosine
from regard.attention.score.dot import Dot
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request
from regard.kernels.sdpa_backends import choice
from regard.kernels.sdpa_backends.choice import set_priority

PRODUCTS = (Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl)


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


def worthwhile(request: Request) -> bool:
    """False for one query on a CPU that alone requires a gradient: the kernel would compute those of the memory too."""
    memory = request.keys.requires_grad or request.values.requires_grad
    alone = request.device == "cpu" and request.query.shape[2] == 1
    return not (alone and torch.is_grad_enabled() and request.query.requires_grad and not memory)


def run(request: Request) -> Attended:
    """Context; statistics by a sweep that holds the weights of a few queries at a time."""
    query, scale = project_query(request)
    causal, allowed = False, None
    if choice.is_plainly_causal(request):  # a graph depends on lengths here
        causal = True
    else:
        allowed = request.allowed
    mask = None if allowed is None else visible(allowed)
    if _has_choice(request):
        context = _run_on_gpu(request, query, mask, causal, scale)
    else:
        keys, values = (repeat_heads(side, query.shape[1]) for side in (request.keys, request.values))
        context = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, dropout_p=request.dropout, is_causal=causal, scale=scale
        )
    if allowed is not None:
        context = context.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    return Attended(context, statistics=sweep(request))


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
    with set_priority(choice.choose_backends(properties).order):
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


def project_query(request: Request) -> tuple[Tensor, float | None]:
    """The query's side of the product, and the scale left to the kernel, which applies it at no cost."""
    score = request.score
    if isinstance(score, ScaledDot):
        return request.query, score.scale
    if isinstance(score, Rotary | TransformerXl):
        return score.project(request.query, request.offset), 1.0
    assert isinstance(score, Dot | Bilinear | Cosine)
    return score.project(request.query), 1.0
