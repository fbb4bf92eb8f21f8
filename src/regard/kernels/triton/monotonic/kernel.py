"""Forward and backward of the expected monotonic alignment: one program per head and row, with all keys.

q_ij = c_ij q_i,j-1 + a_i-1,j,    a_ij = p_ij q_ij
λ_ij = p_ij da_ij + c_i,j+1 λ_i,j+1,    dp_ij = q_ij da_ij,    dc_ij = λ_ij q_i,j-1,    da_i-1,j += λ_ij
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def compose_segments(left_carry, left, right_carry, right):
    """Compose two neighbouring segments of the scan, x -> c x + e and then x -> c' x + e'."""
    return left_carry * right_carry, right_carry * left + right


@triton.jit
@no_type_check
def forward(stop, carry, start, alignment, reached, queries, keys, K: tl.constexpr):
    """Forward kernel over all queries, from the first on."""
    row, j = tl.program_id(0).to(tl.int64), tl.arange(0, K)
    inside = j < keys
    a = tl.load(start + row * keys + j, mask=inside, other=0.0)
    place = row * queries * keys + j
    for _ in range(queries):
        c = tl.load(carry + place, mask=inside, other=0.0)
        p = tl.load(stop + place, mask=inside, other=0.0)
        _, q = tl.associative_scan((c, a), 0, compose_segments)
        a = p * q
        tl.store(reached + place, q, mask=inside)
        tl.store(alignment + place, a, mask=inside)
        place += keys


@triton.jit
@no_type_check
def backward(gradient, stop, carry, reached, d_stop, d_carry, d_start, queries, keys, K: tl.constexpr):
    """Backward kernel, from the last query to the first, and from the last key to the first."""
    row, j = tl.program_id(0).to(tl.int64), keys - 1 - tl.arange(0, K)
    inside = j >= 0
    behind, ahead = j > 0, inside & (j + 1 < keys)
    d = tl.zeros([K], d_start.dtype.element_ty)
    place = (row + 1) * queries * keys + j
    for _ in range(queries):
        place -= keys
        d += tl.load(gradient + place, mask=inside, other=0.0)
        q = tl.load(reached + place, mask=inside, other=0.0)
        p = tl.load(stop + place, mask=inside, other=0.0)
        c = tl.load(carry + place + 1, mask=ahead, other=0.0)
        before = tl.load(reached + place - 1, mask=behind, other=0.0)
        tl.store(d_stop + place, d * q, mask=inside)
        _, d = tl.associative_scan((c, d * p), 0, compose_segments)
        tl.store(d_carry + place, d * before, mask=inside)
    tl.store(d_start + row * keys + j, d, mask=inside)
