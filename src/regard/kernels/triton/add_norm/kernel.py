"""Fused residual add, dropout and layer norm or RMSNorm in one pass, and its backward in another.

    y = x + m ∘ (f + c) / (1 - p),    n = (y - μ) / σ ∘ w + b,    σ = √(var(y) + ε)          m ~ Bernoulli(1 - p)
    g = dn ∘ w,    dy += (g - mean(g) - ŷ mean(g ∘ ŷ)) / σ,    df = m ∘ dy / (1 - p)
    dw = Σ dn ∘ ŷ,    db = Σ dn,    dc = Σ df                                           sums are over rows

with ŷ = (y - μ) / σ. With RMS nothing is subtracted: μ = 0, σ = √(mean(y²) + ε), without mean(g). The dropout mask m comes
from a seed by Philox, four numbers at a time, and is recomputed in the backward, so that none is saved: Salmon et al. 2011,
https://doi.org/10.1145/2063384.2063405, in the seven rounds that they found to suffice. All arithmetic is in float32, loads
and stores in the tensors' precision; sums over rows are deterministic. Rows outside `keep` have a norm of 0.
"""

from typing import no_type_check

import triton
import triton.language as tl

ROUNDS = tl.constexpr(7)


@triton.jit
@no_type_check
def sample_dropout(seed, row, chance, R: tl.constexpr, BLOCK: tl.constexpr):
    """Dropout factors: 1 / (1 - chance) for kept elements, 0 for dropped ones, equal in forward and backward."""
    index = row.to(tl.int64)[:, None] * (BLOCK // 4) + tl.arange(0, BLOCK // 4)[None, :]
    a, b, c, d = tl.rand4x(tl.load(seed), index, n_rounds=ROUNDS)
    random = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), [R, BLOCK])
    return tl.where(random >= chance, 1 / (1 - chance), 0.0)


@triton.jit
@no_type_check
def forward(
    data, sublayer, added, weight, shift, seed, keep, total, wide, entered, centres, scales, rows, size, eps, chance,
    RMS: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Forward of R rows: the residual sum, if there is a sublayer's output, and its norm in one or two precisions."""
    row, column = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < size)[None, :]
    place = row.to(tl.int64)[:, None] * size + column[None, :]
    y = tl.load(data + place, mask=inside, other=0.0).to(tl.float32)
    if sublayer is not None:
        update = tl.load(sublayer + place, mask=inside, other=0.0).to(tl.float32)
        if added is not None:
            update += tl.load(added + column, mask=column < size, other=0.0).to(tl.float32)[None, :]
        if seed is not None:
            update *= sample_dropout(seed, row, chance, R, BLOCK)
        y = (y + update).to(total.dtype.element_ty)
        tl.store(total + place, y, mask=inside)
        y = y.to(tl.float32)
    centre = tl.zeros([R], tl.float32)
    if not RMS:
        centre = tl.sum(y, 1) / size
    centred = tl.where(inside, y - centre[:, None], 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1) / size + eps)
    n = centred * scale[:, None] * tl.load(weight + column, mask=column < size, other=0.0).to(tl.float32)[None, :]
    if shift is not None:
        n += tl.load(shift + column, mask=column < size, other=0.0).to(tl.float32)[None, :]
    if keep is not None:
        n = tl.where((tl.load(keep + row, mask=row < rows, other=0) != 0)[:, None], n, 0.0)
    if wide is not None:
        tl.store(wide + place, n.to(wide.dtype.element_ty), mask=inside)
    if entered is not None:
        tl.store(entered + place, n.to(entered.dtype.element_ty), mask=inside)
    tl.store(centres + row, centre, mask=row < rows)
    tl.store(scales + row, scale, mask=row < rows)


@triton.jit
@no_type_check
def backward(
    total, weight, seed, keep, centres, scales, d_total, d_wide, d_entered, d_data, d_sublayer, sums, rows, size, chance,
    RMS: tl.constexpr, ADDED: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Backward of tiles of R rows in a grid-stride loop: their gradients, and partial sums of dw, db and dc."""
    program, column = tl.program_id(0), tl.arange(0, BLOCK)
    w = tl.load(weight + column, mask=column < size, other=0.0).to(tl.float32)[None, :]
    gains = tl.zeros([R, BLOCK], tl.float32)
    shifts = tl.zeros([R, BLOCK], tl.float32)
    adds = tl.zeros([R, BLOCK], tl.float32)
    for first in range(program * R, rows, tl.num_programs(0) * R):
        row = first + tl.arange(0, R)
        inside = (row < rows)[:, None] & (column < size)[None, :]
        place = row.to(tl.int64)[:, None] * size + column[None, :]
        centre = tl.load(centres + row, mask=row < rows, other=0.0)[:, None]
        scale = tl.load(scales + row, mask=row < rows, other=0.0)[:, None]
        y = tl.load(total + place, mask=inside, other=0.0).to(tl.float32)
        hat = tl.where(inside, y - centre, 0.0) * scale
        dn = tl.zeros([R, BLOCK], tl.float32)
        if d_entered is not None:
            dn += tl.load(d_entered + place, mask=inside, other=0.0).to(tl.float32)
        if d_wide is not None:
            dn += tl.load(d_wide + place, mask=inside, other=0.0).to(tl.float32)
        if keep is not None:
            dn = tl.where((tl.load(keep + row, mask=row < rows, other=0) != 0)[:, None], dn, 0.0)
        gains += dn * hat
        shifts += dn
        g = dn * w
        dy = g - hat * (tl.sum(g * hat, 1) / size)[:, None]
        if not RMS:
            dy -= (tl.sum(g, 1) / size)[:, None]
        dy *= scale
        if d_total is not None:
            dy += tl.load(d_total + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(d_data + place, dy.to(d_data.dtype.element_ty), mask=inside)
        if d_sublayer is not None:
            if seed is not None:
                dy *= sample_dropout(seed, row, chance, R, BLOCK)
            tl.store(d_sublayer + place, dy.to(d_sublayer.dtype.element_ty), mask=inside)
            if ADDED:
                adds += dy
    place = program * (2 + ADDED) * size + column
    tl.store(sums + place, tl.sum(gains, 0), mask=column < size)
    tl.store(sums + place + size, tl.sum(shifts, 0), mask=column < size)
    if ADDED:
        tl.store(sums + place + 2 * size, tl.sum(adds, 0), mask=column < size)
