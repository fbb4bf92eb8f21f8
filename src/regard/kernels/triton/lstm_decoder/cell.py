"""Fused elementwise part of an LSTM cell, forward and backward.

    i, f, o = σ(·),  g = tanh(·) of x + projected,    c' = f c + i g,    h' = o tanh(c')

Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735
The gates are saved for the backward. Sums and cells are in float32 in any precision.
"""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

BLOCK = 256
"""Hidden units of one program."""


@triton.jit
@no_type_check
def tanh(x):
    """Tanh by the sigmoid, which every version of Triton has."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
@no_type_check
def forward(
    sums, projected, before, gates, after, top, next_input, top_row, next_row, size, BLOCK: tl.constexpr,
):  # fmt: skip
    """Kernel of one row and BLOCK units: gates, next cell state, and the hidden state in two buffers."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < size
    gate = row * 4 * size + unit
    x_i = tl.load(sums + gate, mask=inside).to(tl.float32) + tl.load(projected + gate, mask=inside).to(tl.float32)
    gate_f, gate_g, gate_o = gate + size, gate + 2 * size, gate + 3 * size
    x_f = tl.load(sums + gate_f, mask=inside).to(tl.float32) + tl.load(projected + gate_f, mask=inside).to(tl.float32)
    x_g = tl.load(sums + gate_g, mask=inside).to(tl.float32) + tl.load(projected + gate_g, mask=inside).to(tl.float32)
    x_o = tl.load(sums + gate_o, mask=inside).to(tl.float32) + tl.load(projected + gate_o, mask=inside).to(tl.float32)
    i, f, g, o = tl.sigmoid(x_i), tl.sigmoid(x_f), tanh(x_g), tl.sigmoid(x_o)
    cell = f * tl.load(before + row * size + unit, mask=inside) + i * g
    hidden = (o * tanh(cell)).to(top.dtype.element_ty)
    kind = gates.dtype.element_ty
    tl.store(gates + gate, i.to(kind), mask=inside)
    tl.store(gates + gate_f, f.to(kind), mask=inside)
    tl.store(gates + gate_g, g.to(kind), mask=inside)
    tl.store(gates + gate_o, o.to(kind), mask=inside)
    tl.store(after + row * size + unit, cell, mask=inside)
    tl.store(top + row * top_row + unit, hidden, mask=inside)
    tl.store(next_input + row * next_row + unit, hidden, mask=inside)


@triton.jit
@no_type_check
def backward(
    gates, before, after, d_query, d_next, d_output, d_cell, d_gates, d_next_row, d_output_row, size, BLOCK: tl.constexpr,
):  # fmt: skip
    """Backward kernel: the gradient of the gates' input; that of the cell state is updated in place."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < size
    gate, place = row * 4 * size + unit, row * size + unit
    i = tl.load(gates + gate, mask=inside).to(tl.float32)
    f = tl.load(gates + gate + size, mask=inside).to(tl.float32)
    g = tl.load(gates + gate + 2 * size, mask=inside).to(tl.float32)
    o = tl.load(gates + gate + 3 * size, mask=inside).to(tl.float32)
    d_hidden = tl.load(d_query + place, mask=inside)
    d_hidden += tl.load(d_next + row * d_next_row + unit, mask=inside).to(tl.float32)
    d_hidden += tl.load(d_output + row * d_output_row + unit, mask=inside).to(tl.float32)
    tanh_cell = tanh(tl.load(after + place, mask=inside))
    d = tl.load(d_cell + place, mask=inside) + d_hidden * o * (1.0 - tanh_cell * tanh_cell)
    kind = d_gates.dtype.element_ty
    tl.store(d_gates + gate, (d * g * i * (1.0 - i)).to(kind), mask=inside)
    tl.store(d_gates + gate + size, (d * tl.load(before + place, mask=inside) * f * (1.0 - f)).to(kind), mask=inside)
    tl.store(d_gates + gate + 2 * size, (d * i * (1.0 - g * g)).to(kind), mask=inside)
    tl.store(d_gates + gate + 3 * size, (d_hidden * tanh_cell * o * (1.0 - o)).to(kind), mask=inside)
    tl.store(d_cell + place, d * f, mask=inside)


def launch_cell(
    sums: Float[Tensor, "rows gates"],
    projected: Float[Tensor, "rows gates"],
    before: Float[Tensor, "rows size"],
    gates: Float[Tensor, "rows gates"],
    after: Float[Tensor, "rows size"],
    top: Float[Tensor, "rows size"],
    next_input: Float[Tensor, "rows size"],
) -> None:
    """Launch one step from `before` into `gates`, `after`, and column slices `top` and `beside` for the hidden state."""
    rows, size = before.shape
    block = min(BLOCK, triton.next_power_of_2(size))
    strides = top.stride(0), next_input.stride(0)
    forward[(rows, triton.cdiv(size, block))](
        sums, projected, before, gates, after, top, next_input, *strides, size, BLOCK=block
    )


def launch_cell_backward(
    gates: Float[Tensor, "rows gates"],
    before: Float[Tensor, "rows size"],
    after: Float[Tensor, "rows size"],
    d_query: Float[Tensor, "rows size"],
    d_next: Float[Tensor, "rows size"],
    d_output: Float[Tensor, "rows size"],
    d_cell: Float[Tensor, "rows size"],
    d_gates: Float[Tensor, "rows gates"],
) -> None:
    """Launch the backward of a step from three gradients of the hidden state; writes `d_gates` and updates `d_cell`."""
    rows, size = before.shape
    block = min(BLOCK, triton.next_power_of_2(size))
    tensors = gates, before, after, d_query, d_next, d_output, d_cell, d_gates
    backward[(rows, triton.cdiv(size, block))](*tensors, d_next.stride(0), d_output.stride(0), size, BLOCK=block)
