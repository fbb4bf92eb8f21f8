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
    pointers = data + b * stride_b + h * stride_h + rows[:, None] * stride_t + columns[None, :]
    return pointers, (rows < count)[:, None] & (columns < size)[None, :]


@triton.jit
@no_type_check
def load_padding(keep, b, S, KEYS: tl.constexpr, KEEP: tl.constexpr):
    """Padding mask of the keys; masked ones are not loaded, since 0 times NaN is NaN."""
    keys = tl.arange(0, KEYS)
    valid = keys < S
    if KEEP:
        valid = valid & (tl.load(keep + b * S + keys, mask=valid, other=0) != 0)
    return valid


@triton.jit
@no_type_check
def compute_weights(
    q, k, valid, query_documents, key_documents, b, T, S, offset, scale,
    ROWS: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Weights, zero in a fully masked row; PACKED rows have a document mask."""
    rows, keys = tl.arange(0, ROWS), tl.arange(0, KEYS)
    allowed = valid[None, :] & (rows < T)[:, None]
    if PACKED:
        q_documents = tl.load(query_documents + b * T + rows, mask=rows < T, other=0)
        k_documents = tl.load(key_documents + b * S + keys, mask=keys < S, other=0)
        allowed = allowed & (q_documents[:, None] == k_documents[None, :])
    if CAUSAL:
        allowed = allowed & (keys[None, :] <= rows[:, None] + offset)
    s = tl.where(allowed, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, float("-inf"))
    row_max = tl.max(s, axis=1)
    e = tl.exp(s - tl.where(row_max == float("-inf"), 0.0, row_max)[:, None])
    total = tl.sum(e, axis=1)
    return e / tl.where(total > 0.0, total, 1.0)[:, None]


@triton.jit(do_not_specialize=["T", "S", "offset"])
@no_type_check
def forward(
    query, keys, values, keep, query_documents, key_documents, context,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, c_b, c_h, c_t, heads, T, S, D, V, offset, scale,
    ROWS: tl.constexpr, KEYS: tl.constexpr, DIMS: tl.constexpr, VALUES: tl.constexpr,
    KEEP: tl.constexpr, CAUSAL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Forward kernel of one head."""
    program = tl.program_id(0).to(tl.int64)
    b, h = program // heads, program % heads
    at, inside = build_pointers(query, q_b, q_h, q_t, b, h, T, D, ROWS, DIMS)
    q = tl.load(at, mask=inside, other=0.0)
    valid = load_padding(keep, b, S, KEYS, KEEP)
    at, inside = build_pointers(keys, k_b, k_h, k_t, b, h, S, D, KEYS, DIMS)
    k = tl.load(at, mask=inside & valid[:, None], other=0.0)
    at, inside = build_pointers(values, v_b, v_h, v_t, b, h, S, V, KEYS, VALUES)
    v = tl.load(at, mask=inside & valid[:, None], other=0.0)
    p = compute_weights(q, k, valid, query_documents, key_documents, b, T, S, offset, scale, ROWS, KEYS, CAUSAL, PACKED)
    o = tl.dot(p.to(v.dtype), v, input_precision="ieee")
    at, inside = build_pointers(context, c_b, c_h, c_t, b, h, T, V, ROWS, VALUES)
    tl.store(at, o.to(context.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["T", "S", "offset"])
@no_type_check
def backward(
    query, keys, values, keep, query_documents, key_documents, gradient, d_query, d_keys, d_values,
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
    valid = load_padding(keep, b, S, KEYS, KEEP)
    at, inside = build_pointers(keys, k_b, k_h, k_t, b, h, S, D, KEYS, DIMS)
    k = tl.load(at, mask=inside & valid[:, None], other=0.0)
    at, inside = build_pointers(values, v_b, v_h, v_t, b, h, S, V, KEYS, VALUES)
    v = tl.load(at, mask=inside & valid[:, None], other=0.0)
    at, inside = build_pointers(gradient, f_b, f_h, f_t, b, h, T, V, ROWS, VALUES)
    do = tl.load(at, mask=inside, other=0.0)
    p = compute_weights(q, k, valid, query_documents, key_documents, b, T, S, offset, scale, ROWS, KEYS, CAUSAL, PACKED)
    at, inside = build_pointers(d_values, dv_b, dv_h, dv_t, b, h, S, V, KEYS, VALUES)
    dv = tl.dot(tl.trans(p.to(do.dtype)), do, input_precision="ieee")
    tl.store(at, dv.to(d_values.dtype.element_ty), mask=inside)
    dp = tl.dot(do, tl.trans(v), input_precision="ieee")
    ds = (p * (dp - tl.sum(p * dp, axis=1)[:, None]) * scale).to(q.dtype)
    at, inside = build_pointers(d_query, dq_b, dq_h, dq_t, b, h, T, D, ROWS, DIMS)
    dq = tl.dot(ds, k, input_precision="ieee")
    tl.store(at, dq.to(d_query.dtype.element_ty), mask=inside)
    at, inside = build_pointers(d_keys, dk_b, dk_h, dk_t, b, h, S, D, KEYS, DIMS)
    dk = tl.dot(tl.trans(ds), q, input_precision="ieee")
    tl.store(at, dk.to(d_keys.dtype.element_ty), mask=inside)
