"""PyTorch's fused attention: attend(score=any product of two vectors, normalise=Softmax(), scope=any)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.normalise import visible
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import spread
from regard.attention.scope.causal import Causal
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.cosine import Cosine
from regard.attention.score.dot import Dot
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.statistics import sweep
from regard.attention.types import Attended, Request

PRODUCTS = (Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl)


def covers(request: Request) -> str | None:
    """None when this kernel computes the same thing, else the reason it does not."""
    if type(request.score) not in PRODUCTS:
        return f"needs one of {', '.join(each.__name__ for each in PRODUCTS)}, got {type(request.score).__name__}"
    normalise: object = request.normalise
    if type(normalise) is not Softmax:
        return f"needs Softmax, got {type(normalise).__name__}"
    query, key = request.query.shape[-1], request.keys.shape[-1]
    if isinstance(request.score, TransformerXl):
        key -= request.score.waves  # which stand beside each key
    if query != key:
        return f"needs queries and keys of one size, got {query} and {key}"
    if request.weights:
        return "never forms the weights, and they are asked for"
    if request.statistics and torch.compiler.is_compiling():
        return "takes statistics a block of queries at a time, which cannot be traced"
    return None


def worthwhile(request: Request) -> bool:
    """Not for one query on a CPU when only its own gradient is wanted: the kernel would find those of the memory too."""
    memory = request.keys.requires_grad or request.values.requires_grad
    alone = request.device == "cpu" and request.query.shape[2] == 1
    return not (alone and torch.is_grad_enabled() and request.query.requires_grad and not memory)


def run(request: Request) -> Attended:
    """Context by scaled_dot_product_attention; statistics by a sweep that holds the weights of a few queries at a time."""
    heads = request.query.shape[1]
    query, scale = project(request)
    keys, values = spread(request.keys, heads), spread(request.values, heads)
    if _is_plainly_causal(request):
        context = F.scaled_dot_product_attention(query, keys, values, dropout_p=request.dropout, is_causal=True, scale=scale)
        return Attended(context, statistics=sweep(request))
    allowed = request.allowed
    context = F.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=None if allowed is None else visible(allowed),
        dropout_p=request.dropout,
        scale=scale,
    )
    if allowed is not None:
        context = context.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    return Attended(context, statistics=sweep(request))


def project(request: Request) -> tuple[Tensor, float | None]:
    """The query's side of the product and the factor left to the kernel, which scales for nothing."""
    score = request.score
    if isinstance(score, ScaledDot):
        return request.query, score.scale
    if isinstance(score, Rotary | TransformerXl):
        return score.project(request.query, request.offset), 1.0
    assert isinstance(score, Dot | Bilinear | Cosine)
    return score.project(request.query), 1.0


def _is_plainly_causal(request: Request) -> bool:
    """The kernel's own causal mask begins at the first key; an exported graph keeps a mask, which fits any lengths."""
    if type(request.scope) is not Causal or torch.compiler.is_exporting():
        return False
    return not isinstance(request.offset, Tensor) and request.offset == 0
