"""A product of few rows with a matrix, and all around it, in one pass over the matrix.

    y = f(norm(x) Wᵀ + b) + r          norm, f = max(0, .), b and r each where asked for; norm is a layer norm

What surrounds a product of few rows takes as long as the product, and each kernel waits for the one before. Every program
norms its row for itself.
"""

from typing import NamedTuple, no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels.runtime import compile
from regard.kernels.triton.decode_step.tile import on, sooner

MOST, WIDEST = 8, 1024
"""Rows, each of which reads the matrix, and the numbers of one that is normed, which a program holds in registers."""
Rows = Float[Tensor, "rows size"]


class Way(NamedTuple):
    """Columns of the product that a program finds, numbers of a row that it sums at a time, and its warps."""

    columns: int
    block: int
    warps: int


USUAL = Way(4, 2048, 4)


class Before(NamedTuple):
    """The layer norm of what is multiplied."""

    weight: Float[Tensor, " size"]
    bias: Float[Tensor, " size"]
    eps: float


@triton.jit
@no_type_check
def summed(data, w, gain, shift, k, size, eps):
    """Some numbers of a row, normed where that is asked for, times those of the matrix.

    The row is read once for each column, so that no thread waits for what another has read.
    """
    inside = tl.broadcast_to((k < size)[None, :], w.shape)
    x = tl.load(tl.broadcast_to(data + k[None, :], w.shape), mask=inside, other=0.0).to(tl.float32)
    if gain is not None:
        away = tl.where(inside, x - (tl.sum(x, 1) / size)[:, None], 0.0)
        x = away / tl.sqrt(tl.sum(away * away, 1) / size + eps)[:, None]
        x = (x * gain + shift).to(w.dtype).to(tl.float32)
    return tl.sum(w.to(tl.float32) * x, 1)


@triton.jit
@no_type_check
def multiply(
    data, matrix, bias, gain, shift, around, found, size, columns, eps,
    RELU: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WHOLE: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Some columns of one row, K numbers at a time, or all of them; what is constant is read before the row is there."""
    row, n, k = tl.program_id(0), tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, K)
    column = n < columns
    w = tl.load(matrix + n[:, None] * size + k[None, :], mask=column[:, None] & (k < size)[None, :], other=0.0)
    if gain is not None:
        gain = tl.load(gain + k[None, :], mask=(k < size)[None, :], other=0.0).to(tl.float32)
        shift = tl.load(shift + k[None, :], mask=(k < size)[None, :], other=0.0).to(tl.float32)
    behind = tl.zeros([N], tl.float32)
    if bias is not None:
        behind = tl.load(bias + n, mask=column, other=0.0).to(tl.float32)
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    beside = tl.zeros([N], tl.float32)
    if around is not None:
        beside = tl.load(around + row * columns + n, mask=column, other=0.0).to(tl.float32)
    total = summed(data + row * size, w, gain, shift, k, size, eps)
    if not WHOLE:
        for first in range(K, size, K):
            p = first + k
            w = tl.load(matrix + n[:, None] * size + p[None, :], mask=column[:, None] & (p < size)[None, :], other=0.0)
            total += summed(data + row * size, w, None, None, p, size, eps)
    total += behind
    if RELU:
        total = tl.maximum(total, 0.0)
    tl.store(found + row * columns + n, (total + beside).to(found.dtype.element_ty), mask=column)


def product(
    data: Rows,
    weights: tuple[Float[Tensor, "columns size"], Float[Tensor, " columns"] | None],
    *,
    norm: Before | None = None,
    around: Float[Tensor, "rows columns"] | None = None,
    relu: bool = False,
    way: Way = USUAL,
    early: bool = False,
) -> Float[Tensor, "rows columns"]:
    """All at once, for MOST rows or fewer; what is normed may have WIDEST numbers. `early`: see `overlaps` in tile.py."""
    matrix, bias = weights
    (rows, size), columns = data.shape, len(matrix)
    if rows > MOST or (norm is not None and size > WIDEST):
        most = f"{MOST} rows or fewer, and {WIDEST} numbers where they are normed"
        raise ValueError(f"product needs {most}, got {rows} of {size}")
    found = data.new_empty(rows, columns)
    block = triton.next_power_of_2(size) if norm is not None else min(triton.next_power_of_2(size), way.block)
    gain, shift, eps = norm or (None, None, 0.0)
    with on(data):
        compile.launch(
            multiply, (rows, triton.cdiv(columns, way.columns)),
            data, matrix, bias, gain, shift, around, found, size, columns, eps,
            RELU=relu, N=way.columns, K=block, WHOLE=block >= size, num_warps=way.warps, **sooner(early),
        )  # fmt: skip
    return found
