"""Triton kernel of `add_norm.py`: one program for each row."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime import compile

Rows = Float[Tensor, "rows size"]


@triton.jit
@no_type_check
def kernel(data, output, weight, bias, total, normed, eps, size: tl.constexpr, block: tl.constexpr):
    """Fused sum and layer norm: sums in float32; the norm is that of the sum as stored."""
    columns = tl.arange(0, block)
    inside = columns < size
    places = tl.program_id(0).to(tl.int64) * size + columns
    left = tl.load(data + places, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(output + places, mask=inside, other=0.0).to(tl.float32)
    stored = (left + right).to(total.dtype.element_ty)
    tl.store(total + places, stored, mask=inside)
    x = stored.to(tl.float32)
    mean = tl.sum(x, axis=0) / size
    centred = tl.where(inside, x - mean, 0.0)
    spread = tl.sum(centred * centred, axis=0) / size
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    y = centred / tl.sqrt(spread + eps) * w + b
    tl.store(normed + places, y.to(normed.dtype.element_ty), mask=inside)


def launch(
    data: Rows, output: Rows, weight: Float[Tensor, " size"], bias: Float[Tensor, " size"], eps: float
) -> tuple[Rows, Rows]:
    """Launch the kernel; returns the sum and its norm."""
    data, output = data.contiguous(), output.contiguous()
    rows, size = data.shape
    total, normed = torch.empty_like(data), torch.empty_like(data)
    block = triton.next_power_of_2(size)
    warps = min(8, max(1, block // 256))
    compile.launch(kernel, (rows,), data, output, weight, bias, total, normed, eps, size, block, num_warps=warps)
    return total, normed
