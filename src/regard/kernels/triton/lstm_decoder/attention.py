"""One-query attention of every row, with backward: attend(score=a product, normalise=Softmax(), scope=Padding).

    a = softmax_s(scale qᵀ k_s),    c = Σ_s a_s v_s

A program has a row: its scores, at most 1,024, stay in registers, and keys and values are read once, a few dimensions at a
time. The backward gives dq and dScores; dK and dV are matrix products over all steps of the decoder, computed elsewhere.
"""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor

MOST = 1024
"""The most keys of a program."""
TILE = 8192
"""Elements of keys or values per iteration."""


@triton.jit(do_not_specialize=["S"])
@no_type_check
def forward(
    query, keys, values, keep, weights, context, query_row, context_row, S, scale,
    D: tl.constexpr, V: tl.constexpr, KEYS: tl.constexpr, CHUNK: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Kernel of the weights and the context of one row; zeros without a visible key."""
    row = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, KEYS)
    keep_mask = position < S
    if KEEP:
        keep_mask = keep_mask & (tl.load(keep + row * S + position, mask=keep_mask, other=0) != 0)
    scores = tl.zeros((KEYS,), tl.float32)
    for first in range(0, D, CHUNK):
        dims = first + tl.arange(0, CHUNK)
        q = tl.load(query + row * query_row + dims, mask=dims < D, other=0.0).to(tl.float32)
        tile = (row * S + position)[:, None] * D + dims[None, :]
        k = tl.load(keys + tile, mask=keep_mask[:, None] & (dims < D)[None, :], other=0.0).to(tl.float32)
        scores += tl.sum(k * q[None, :], axis=1)
    scores = tl.where(keep_mask, scores * scale, float("-inf"))
    top = tl.max(scores, axis=0)
    e = tl.exp(scores - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(e, axis=0)
    a = e / tl.where(total > 0.0, total, 1.0)
    tl.store(weights + row * S + position, a, mask=position < S)
    for first in range(0, V, CHUNK):
        dims = first + tl.arange(0, CHUNK)
        tile = (row * S + position)[:, None] * V + dims[None, :]
        v = tl.load(values + tile, mask=keep_mask[:, None] & (dims < V)[None, :], other=0.0).to(tl.float32)
        context_chunk = tl.sum(a[:, None] * v, axis=0)
        tl.store(context + row * context_row + dims, context_chunk.to(context.dtype.element_ty), mask=dims < V)


@triton.jit(do_not_specialize=["S"])
@no_type_check
def backward(
    weights, keys, values, keep, d_next, d_output, d_context, d_scores, d_query, S, scale,
    D: tl.constexpr, V: tl.constexpr, KEYS: tl.constexpr, CHUNK: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Backward kernel of one row, from the sum of two gradients of [query; context]."""
    row = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, KEYS)
    keep_mask = position < S
    if KEEP:
        keep_mask = keep_mask & (tl.load(keep + row * S + position, mask=keep_mask, other=0) != 0)
    d_next += row * (D + V)
    d_output += row * (D + V)
    a = tl.load(weights + row * S + position, mask=keep_mask, other=0.0)
    d_a = tl.zeros((KEYS,), tl.float32)
    for first in range(0, V, CHUNK):
        dims = first + tl.arange(0, CHUNK)
        d = tl.load(d_next + D + dims, mask=dims < V, other=0.0).to(tl.float32)
        d += tl.load(d_output + D + dims, mask=dims < V, other=0.0).to(tl.float32)
        tl.store(d_context + row * V + dims, d.to(d_context.dtype.element_ty), mask=dims < V)
        tile = (row * S + position)[:, None] * V + dims[None, :]
        v = tl.load(values + tile, mask=keep_mask[:, None] & (dims < V)[None, :], other=0.0).to(tl.float32)
        d_a += tl.sum(v * d[None, :], axis=1)
    d_s = a * (d_a - tl.sum(a * d_a, axis=0)) * scale
    tl.store(d_scores + row * S + position, d_s.to(d_scores.dtype.element_ty), mask=position < S)
    for first in range(0, D, CHUNK):
        dims = first + tl.arange(0, CHUNK)
        tile = (row * S + position)[:, None] * D + dims[None, :]
        k = tl.load(keys + tile, mask=keep_mask[:, None] & (dims < D)[None, :], other=0.0).to(tl.float32)
        d = tl.sum(d_s[:, None] * k, axis=0)
        d += tl.load(d_next + dims, mask=dims < D, other=0.0).to(tl.float32)
        d += tl.load(d_output + dims, mask=dims < D, other=0.0).to(tl.float32)
        tl.store(d_query + row * D + dims, d, mask=dims < D)


def launch_attention(
    query: Float[Tensor, "rows size"],
    keys: Float[Tensor, "rows keys size"],
    values: Float[Tensor, "rows keys value"],
    keep: Bool[Tensor, "rows keys"] | None,
    scale: float,
    weights: Float[Tensor, "rows keys"],
    context: Float[Tensor, "rows value"],
) -> None:
    """Launch the forward into `shares` and `context`; query and context may be column slices."""
    tensors = query, keys, values, keep, weights, context, query.stride(0), context.stride(0)
    forward[(len(keys),)](*tensors, keys.shape[1], scale, **_build_tile_arguments(keys, values, keep))


def launch_attention_backward(
    weights: Float[Tensor, "rows keys"],
    keys: Float[Tensor, "rows keys size"],
    values: Float[Tensor, "rows keys value"],
    keep: Bool[Tensor, "rows keys"] | None,
    scale: float,
    d_next: Float[Tensor, "rows both"],
    d_output: Float[Tensor, "rows both"],
    d_context: Float[Tensor, "rows value"],
    d_scores: Float[Tensor, "rows keys"],
    d_query: Float[Tensor, "rows size"],
) -> None:
    """Launch the backward from two gradients of [query; context] into the last three arguments."""
    tensors = weights, keys, values, keep, d_next, d_output, d_context, d_scores, d_query
    backward[(len(keys),)](*tensors, keys.shape[1], scale, **_build_tile_arguments(keys, values, keep))


def _build_tile_arguments(keys: Tensor, values: Tensor, keep: Tensor | None) -> dict[str, int | bool]:
    rows = max(16, triton.next_power_of_2(keys.shape[1]))
    size, value = keys.shape[2], values.shape[2]
    chunk = min(max(32, TILE // rows), max(16, triton.next_power_of_2(max(size, value))))
    return {"D": size, "V": value, "KEYS": rows, "CHUNK": chunk, "KEEP": keep is not None, "num_warps": 8}
