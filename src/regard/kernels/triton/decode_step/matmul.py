"""Fused layer norm, matrix product, bias, ReLU and residual of few rows, in one pass over the weights.

    y = f(norm(x) Wᵀ + b) + r          norm, f = max(0, .), b and r each where asked for; norm is a layer norm

The elementwise operations around a product of few rows take as long as the product, and each kernel waits for the one
before. Every program computes the layer norm of its row itself.
"""

from typing import NamedTuple, no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels.runtime import compile
from regard.kernels.triton.decode_step.tile import build_launch_options, use_device

MAX_ROWS, MAX_WIDTH = 8, 1024
"""The most rows, each of which reads the weights, and the widest row of a layer norm, which is held in registers."""
Rows = Float[Tensor, "rows size"]


class MatmulTile(NamedTuple):
    """Tile of a program: output columns, elements of a row per iteration, and warps."""

    columns: int
    block: int
    warps: int


DEFAULT_TILE = MatmulTile(4, 2048, 4)


class LayerNormArguments(NamedTuple):
    """Layer norm of the input."""

    weight: Float[Tensor, " size"]
    bias: Float[Tensor, " size"]
    eps: float


@triton.jit
@no_type_check
def compute_partial_products(data, w, gain, shift, k, size, eps):
    """Partial products of a row, after the layer norm if requested, with the weights.

    The row is read once for each column, which avoids synchronisation between threads.
    """
    inside = tl.broadcast_to((k < size)[None, :], w.shape)
    x = tl.load(tl.broadcast_to(data + k[None, :], w.shape), mask=inside, other=0.0).to(tl.float32)
    if gain is not None:
        centred = tl.where(inside, x - (tl.sum(x, 1) / size)[:, None], 0.0)
        x = centred / tl.sqrt(tl.sum(centred * centred, 1) / size + eps)[:, None]
        x = (x * gain + shift).to(w.dtype).to(tl.float32)
    return tl.sum(w.to(tl.float32) * x, 1)


@triton.jit
@no_type_check
def matmul_kernel(
    data, matrix, bias, gain, shift, residual, output, size, columns, eps,
    RELU: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WHOLE: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Kernel of some columns of one row, K elements per iteration, or all; weights are loaded before the row is ready."""
    row, n, k = tl.program_id(0), tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, K)
    column = n < columns
    w = tl.load(matrix + n[:, None] * size + k[None, :], mask=column[:, None] & (k < size)[None, :], other=0.0)
    if gain is not None:
        gain = tl.load(gain + k[None, :], mask=(k < size)[None, :], other=0.0).to(tl.float32)
        shift = tl.load(shift + k[None, :], mask=(k < size)[None, :], other=0.0).to(tl.float32)
    bias_values = tl.zeros([N], tl.float32)
    if bias is not None:
        bias_values = tl.load(bias + n, mask=column, other=0.0).to(tl.float32)
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    residual_values = tl.zeros([N], tl.float32)
    if residual is not None:
        residual_values = tl.load(residual + row * columns + n, mask=column, other=0.0).to(tl.float32)
    total = compute_partial_products(data + row * size, w, gain, shift, k, size, eps)
    if not WHOLE:
        for first in range(K, size, K):
            p = first + k
            w = tl.load(matrix + n[:, None] * size + p[None, :], mask=column[:, None] & (p < size)[None, :], other=0.0)
            total += compute_partial_products(data + row * size, w, None, None, p, size, eps)
    total += bias_values
    if RELU:
        total = tl.maximum(total, 0.0)
    tl.store(output + row * columns + n, (total + residual_values).to(output.dtype.element_ty), mask=column)


def fused_matmul(
    data: Rows,
    weights: tuple[Float[Tensor, "columns size"], Float[Tensor, " columns"] | None],
    *,
    norm: LayerNormArguments | None = None,
    residual: Float[Tensor, "rows columns"] | None = None,
    relu: bool = False,
    tile: MatmulTile = DEFAULT_TILE,
    early: bool = False,
) -> Float[Tensor, "rows columns"]:
    """Launch the fused product for at most MOST rows, of at most WIDEST elements with a norm; `early`: `tile.overlaps`."""
    matrix, bias = weights
    (rows, size), columns = data.shape, len(matrix)
    if rows > MAX_ROWS or (norm is not None and size > MAX_WIDTH):
        most = f"{MAX_ROWS} rows or fewer, and {MAX_WIDTH} numbers where they are normed"
        raise ValueError(f"product needs {most}, got {rows} of {size}")
    output = data.new_empty(rows, columns)
    block = triton.next_power_of_2(size) if norm is not None else min(triton.next_power_of_2(size), tile.block)
    gain, shift, eps = norm or (None, None, 0.0)
    with use_device(data):
        compile.launch(
            matmul_kernel, (rows, triton.cdiv(columns, tile.columns)),
            data, matrix, bias, gain, shift, residual, output, size, columns, eps,
            RELU=relu, N=tile.columns, K=block, WHOLE=block >= size, num_warps=tile.warps, **build_launch_options(early),
        )  # fmt: skip
    return output
