"""Fused elementwise part of an LSTM cell, forward and backward.

    i, f, o = σ(·),  g = tanh(·) of x + given,    c' = f c + i g,    h' = o tanh(c')

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
    sums, given, before, gates, after, top, beside, top_row, beside_row, size, BLOCK: tl.constexpr,
):  # fmt: skip
    """Kernel of one row and BLOCK units: gates, next cell state, and the hidden state in two buffers."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < size
    gate = row * 4 * size + unit
    x_i = tl.load(sums + gate, mask=inside).to(tl.float32) + tl.load(given + gate, mask=inside).to(tl.float32)
    gate_f, gate_g, gate_o = gate + size, gate + 2 * size, gate + 3 * size
    x_f = tl.load(sums + gate_f, mask=inside).to(tl.float32) + tl.load(given + gate_f, mask=inside).to(tl.float32)
    x_g = tl.load(sums + gate_g, mask=inside).to(tl.float32) + tl.load(given + gate_g, mask=inside).to(tl.float32)
    x_o = tl.load(sums + gate_o, mask=inside).to(tl.float32) + tl.load(given + gate_o, mask=inside).to(tl.float32)
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
    tl.store(beside + row * beside_row + unit, hidden, mask=inside)


@triton.jit
@no_type_check
def backward(
    gates, before, after, looked, flowing, outer, d_cell, d_gates, flowing_row, outer_row, size, BLOCK: tl.constexpr,
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
    d_hidden = tl.load(looked + place, mask=inside)
    d_hidden += tl.load(flowing + row * flowing_row + unit, mask=inside).to(tl.float32)
    d_hidden += tl.load(outer + row * outer_row + unit, mask=inside).to(tl.float32)
    bent = tanh(tl.load(after + place, mask=inside))
    d = tl.load(d_cell + place, mask=inside) + d_hidden * o * (1.0 - bent * bent)
    kind = d_gates.dtype.element_ty
    tl.store(d_gates + gate, (d * g * i * (1.0 - i)).to(kind), mask=inside)
    tl.store(d_gates + gate + size, (d * tl.load(before + place, mask=inside) * f * (1.0 - f)).to(kind), mask=inside)
    tl.store(d_gates + gate + 2 * size, (d * i * (1.0 - g * g)).to(kind), mask=inside)
    tl.store(d_gates + gate + 3 * size, (d_hidden * bent * o * (1.0 - o)).to(kind), mask=inside)
    tl.store(d_cell + place, d * f, mask=inside)


def launch_cell(
    sums: Float[Tensor, "rows gates"],
    given: Float[Tensor, "rows gates"],
    before: Float[Tensor, "rows size"],
    gates: Float[Tensor, "rows gates"],
    after: Float[Tensor, "rows size"],
    top: Float[Tensor, "rows size"],
    beside: Float[Tensor, "rows size"],
) -> None:
    """Launch one step from `before` into `gates`, `after`, and column slices `top` and `beside` for the hidden state."""
    rows, size = before.shape
    block = min(BLOCK, triton.next_power_of_2(size))
    strides = top.stride(0), beside.stride(0)
    forward[(rows, triton.cdiv(size, block))](sums, given, before, gates, after, top, beside, *strides, size, BLOCK=block)


def launch_cell_backward(
    gates: Float[Tensor, "rows gates"],
    before: Float[Tensor, "rows size"],
    after: Float[Tensor, "rows size"],
    looked: Float[Tensor, "rows size"],
    flowing: Float[Tensor, "rows size"],
    outer: Float[Tensor, "rows size"],
    d_cell: Float[Tensor, "rows size"],
    d_gates: Float[Tensor, "rows gates"],
) -> None:
    """Launch the backward of a step from three gradients of the hidden state; writes `d_gates` and updates `d_cell`."""
    rows, size = before.shape
    block = min(BLOCK, triton.next_power_of_2(size))
    moved = gates, before, after, looked, flowing, outer, d_cell, d_gates
    backward[(rows, triton.cdiv(size, block))](*moved, flowing.stride(0), outer.stride(0), size, BLOCK=block)
