"""Cross-attention of the C++ engine: dot-product or additive score, and softmax."""

import ctypes

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.per_head import repeat_heads
from regard.attention.score.additive import Additive
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory
from regard.decoding.engines.cpp.matrices import (
    Matrix,
    OwningStructure,
    build_linear,
    build_matrix,
    find_address,
    make_absent_matrix,
)
from regard.decoding.engines.eager import attention as looking


class CrossAttention(OwningStructure):
    """Cross-attention weights and sizes as a C struct."""

    _fields_ = (
        ("asks", Matrix),
        ("output", Matrix),
        ("heads", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("wide", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("v", ctypes.c_void_p),
    )


class Side(ctypes.Structure):
    """Keys or values as a C struct, with the strides of sources, heads and keys."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("source", ctypes.c_int64),
        ("head", ctypes.c_int64),
        ("key", ctypes.c_int64),
    )


class Source(OwningStructure):
    """Keys and values of one cross-attention as a C struct."""

    _fields_ = (("keys", Side), ("values", Side))


def covers(attention: Attention) -> str | None:
    """Reason why the C++ engine does not cover this attention, or None."""
    if reason := looking.covers(attention):
        return reason
    if isinstance(attention.score, Additive) and (isinstance(attention, MultiHead) or len(attention.score.W.weight) > 1):
        return "needs an additive score of one head"
    if isinstance(attention.score, Additive) and isinstance(attention.query, nn.Linear):
        return "needs an additive score without another projection of its queries"
    if getattr(attention, "how", "concat") != "concat":
        return f"needs heads that are joined by concat, got {attention.how}"
    return None


def build_attention(attention: Attention, precision: str, size: int, behind: nn.Module | None = None) -> CrossAttention:
    """Build the C struct of an attention; `size` is the query's. `behind` takes the place of W^O where there is none."""
    score, heads = attention.score, attention.heads if isinstance(attention, MultiHead) else 1
    output = attention.output if isinstance(attention.output, nn.Linear) else behind
    out = build_linear([output], precision) if isinstance(output, nn.Linear) else make_absent_matrix()
    wide = (out.size or attention.size) // heads
    if isinstance(score, Additive):  # its matrix is not quantised, nor is it in the default engine
        W, v = score.W.weight[0].detach(), score.v.weight.detach().flatten()
        asks = build_matrix(W, W.new_zeros(len(W)))
        return CrossAttention(asks, out, 1, len(v), wide, 1.0, find_address(v), references=(asks, out, v))
    asks = build_linear([attention.query], precision) if isinstance(attention.query, nn.Linear) else make_absent_matrix()
    one = (asks.out or size) // heads
    scale = score.factor(torch.empty(0, 0, 0, one)) if isinstance(score, ScaledDot) else 1.0
    return CrossAttention(asks, out, heads, one, wide, scale, None, references=(asks, out))


def build_source(attention: Attention, memory: Memory) -> Source:
    """Build the C struct of a batch's keys and values."""
    heads = attention.heads if isinstance(attention, MultiHead) else 1
    keys, values = (expand_heads(repeat_heads(tensor, heads), heads) for tensor in memory[:2])
    return Source(*(Side(tensor.data_ptr(), *tensor.stride()[:3]) for tensor in (keys, values)), references=(keys, values))


def expand_heads(data: Float[Tensor, "batch key_heads keys dim"], heads: int) -> Float[Tensor, "batch heads keys dim"]:
    """Expand keys or values to all heads, contiguous in the last dimension."""
    data = data if data.shape[1] == heads else data.expand(-1, heads, -1, -1)
    return data if data.stride(3) == 1 else data.contiguous()
