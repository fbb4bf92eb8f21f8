"""Bias and tanh of the attentional hidden state, r = tanh(x + b), forward and backward.

Luong, Pham and Manning 2015, eq. 5, https://arxiv.org/abs/1508.04025
"""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.triton.lstm_decoder.cell import BLOCK, tanh


@triton.jit
@no_type_check
def forward(sums, bias, output, output_row, size, BLOCK: tl.constexpr):
    """Kernel of one row and BLOCK units."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < size
    x = tl.load(sums + row * size + unit, mask=inside).to(tl.float32) + tl.load(bias + unit, mask=inside).to(tl.float32)
    tl.store(output + row * output_row + unit, tanh(x).to(output.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def backward(output, d_next, d_output, d_sums, output_row, d_next_row, d_output_row, size, BLOCK: tl.constexpr):
    """Backward kernel: d = (flowing + outer) (1 - r²)."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < size
    r = tl.load(output + row * output_row + unit, mask=inside).to(tl.float32)
    d = tl.load(d_next + row * d_next_row + unit, mask=inside).to(tl.float32)
    d += tl.load(d_output + row * d_output_row + unit, mask=inside).to(tl.float32)
    tl.store(d_sums + row * size + unit, (d * (1.0 - r * r)).to(d_sums.dtype.element_ty), mask=inside)


def launch_readout(
    sums: Float[Tensor, "rows size"], bias: Float[Tensor, " size"], output: Float[Tensor, "rows size"]
) -> None:
    """Launch the forward into `read`, which may be a column slice."""
    rows, size = sums.shape
    block = min(BLOCK, triton.next_power_of_2(size))
    forward[(rows, triton.cdiv(size, block))](sums, bias, output, output.stride(0), size, BLOCK=block)


def launch_readout_backward(
    output: Float[Tensor, "rows size"],
    d_next: Float[Tensor, "rows size"],
    d_output: Float[Tensor, "rows size"],
    d_sums: Float[Tensor, "rows size"],
) -> None:
    """Launch the backward from two gradients of r into `d_sums`."""
    rows, size = d_sums.shape
    block = min(BLOCK, triton.next_power_of_2(size))
    strides = output.stride(0), d_next.stride(0), d_output.stride(0)
    backward[(rows, triton.cdiv(size, block))](output, d_next, d_output, d_sums, *strides, size, BLOCK=block)
