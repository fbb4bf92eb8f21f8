"""Forward and backward of attention over short sequences: one program per head, with its weights in registers.

    P = softmax(scale Q Kᵀ),  C = P V
    dV = Pᵀ dC,  dP = dC Vᵀ,  dS = P ∘ (dP - Σ_k P ∘ dP),  dQ = scale dS K,  dK = scale dSᵀ Q

The backward is that of Dao et al. 2022, https://arxiv.org/abs/2205.14135, with a single tile. Tensors come with three
strides, of row, head and position; their last axis is dense.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def build_pointers(data, stride_b, stride_h, stride_t, b, h, count, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Pointers to all positions of one head, and their mask."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    where = data + b * stride_b + h * stride_h + rows[:, None] * stride_t + columns[None, :]
    return where, (rows < count)[:, None] & (columns < size)[None, :]


@triton.jit
@no_type_check
def load_padding(keep, b, S, KEYS: tl.constexpr, KEEP: tl.constexpr):
    """Padding mask of the keys; masked ones are not loaded, since 0 times NaN is NaN."""
    keys = tl.arange(0, KEYS)
    there = keys < S
    if KEEP:
        there = there & (tl.load(keep + b * S + keys, mask=there, other=0) != 0)
    return there


@triton.jit
@no_type_check
def compute_weights(
    q, k, there, asking, belonging, b, T, S, offset, scale,
    ROWS: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Weights, zero in a fully masked row; PACKED rows have a document mask."""
    rows, keys = tl.arange(0, ROWS), tl.arange(0, KEYS)
    seen = there[None, :] & (rows < T)[:, None]
    if PACKED:
        ours = tl.load(asking + b * T + rows, mask=rows < T, other=0)
        theirs = tl.load(belonging + b * S + keys, mask=keys < S, other=0)
        seen = seen & (ours[:, None] == theirs[None, :])
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None] + offset)
    s = tl.where(seen, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, float("-inf"))
    top = tl.max(s, axis=1)
    e = tl.exp(s - tl.where(top == float("-inf"), 0.0, top)[:, None])
    total = tl.sum(e, axis=1)
    return e / tl.where(total > 0.0, total, 1.0)[:, None]


@triton.jit(do_not_specialize=["T", "S", "offset"])
@no_type_check
def forward(
    query, keys, values, keep, asking, belonging, context,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, c_b, c_h, c_t, heads, T, S, D, V, offset, scale,
    ROWS: tl.constexpr, KEYS: tl.constexpr, DIMS: tl.constexpr, VALUES: tl.constexpr,
    KEEP: tl.constexpr, CAUSAL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Forward kernel of one head."""
    program = tl.program_id(0).to(tl.int64)
    b, h = program // heads, program % heads
    at, inside = build_pointers(query, q_b, q_h, q_t, b, h, T, D, ROWS, DIMS)
    q = tl.load(at, mask=inside, other=0.0)
    there = load_padding(keep, b, S, KEYS, KEEP)
    at, inside = build_pointers(keys, k_b, k_h, k_t, b, h, S, D, KEYS, DIMS)
    k = tl.load(at, mask=inside & there[:, None], other=0.0)
    at, inside = build_pointers(values, v_b, v_h, v_t, b, h, S, V, KEYS, VALUES)
    v = tl.load(at, mask=inside & there[:, None], other=0.0)
    p = compute_weights(q, k, there, asking, belonging, b, T, S, offset, scale, ROWS, KEYS, CAUSAL, PACKED)
    found = tl.dot(p.to(v.dtype), v, input_precision="ieee")
    at, inside = build_pointers(context, c_b, c_h, c_t, b, h, T, V, ROWS, VALUES)
    tl.store(at, found.to(context.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["T", "S", "offset"])
@no_type_check
def backward(
    query, keys, values, keep, asking, belonging, flowing, d_query, d_keys, d_values,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, f_b, f_h, f_t,
    dq_b, dq_h, dq_t, dk_b, dk_h, dk_t, dv_b, dv_h, dv_t, heads, T, S, D, V, offset, scale,
    ROWS: tl.constexpr, KEYS: tl.constexpr, DIMS: tl.constexpr, VALUES: tl.constexpr,
    KEEP: tl.constexpr, CAUSAL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Backward kernel of one head."""
    program = tl.program_id(0).to(tl.int64)
    b, h = program // heads, program % heads
    at, inside = build_pointers(query, q_b, q_h, q_t, b, h, T, D, ROWS, DIMS)
    q = tl.load(at, mask=inside, other=0.0)
    there = load_padding(keep, b, S, KEYS, KEEP)
    at, inside = build_pointers(keys, k_b, k_h, k_t, b, h, S, D, KEYS, DIMS)
    k = tl.load(at, mask=inside & there[:, None], other=0.0)
    at, inside = build_pointers(values, v_b, v_h, v_t, b, h, S, V, KEYS, VALUES)
    v = tl.load(at, mask=inside & there[:, None], other=0.0)
    at, inside = build_pointers(flowing, f_b, f_h, f_t, b, h, T, V, ROWS, VALUES)
    d = tl.load(at, mask=inside, other=0.0)
    p = compute_weights(q, k, there, asking, belonging, b, T, S, offset, scale, ROWS, KEYS, CAUSAL, PACKED)
    at, inside = build_pointers(d_values, dv_b, dv_h, dv_t, b, h, S, V, KEYS, VALUES)
    found = tl.dot(tl.trans(p.to(d.dtype)), d, input_precision="ieee")
    tl.store(at, found.to(d_values.dtype.element_ty), mask=inside)
    d_p = tl.dot(d, tl.trans(v), input_precision="ieee")
    d_s = (p * (d_p - tl.sum(p * d_p, axis=1)[:, None]) * scale).to(q.dtype)
    at, inside = build_pointers(d_query, dq_b, dq_h, dq_t, b, h, T, D, ROWS, DIMS)
    found = tl.dot(d_s, k, input_precision="ieee")
    tl.store(at, found.to(d_query.dtype.element_ty), mask=inside)
    at, inside = build_pointers(d_keys, dk_b, dk_h, dk_t, b, h, S, D, KEYS, DIMS)
    found = tl.dot(tl.trans(d_s), q, input_precision="ieee")
    tl.store(at, found.to(d_keys.dtype.element_ty), mask=inside)
