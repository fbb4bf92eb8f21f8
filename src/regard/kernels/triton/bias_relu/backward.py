"""Backward of bias and ReLU: masks the gradient in place and sums it over rows for the bias, in one pass.

dx = [y > 0] dy,    db = Σ_rows dx                y = max(0, x + b)
"""

from contextlib import nullcontext
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

TALL, WIDE, WARPS = 16, 256, 4
PROGRAMS = 4
"""Programs per multiprocessor."""


@triton.jit
@no_type_check
def backward_kernel(gradient, output, sums, rows, size, R: tl.constexpr, C: tl.constexpr):
    """Kernel of some columns and tiles of R rows in a grid-stride loop."""
    column = tl.program_id(0) * C + tl.arange(0, C)
    acc = tl.zeros([R, C], tl.float32)
    for first in range(tl.program_id(1) * R, rows, tl.num_programs(1) * R):
        row = first + tl.arange(0, R)
        inside = (row < rows)[:, None] & (column < size)[None, :]
        place = row.to(tl.int64)[:, None] * size + column[None, :]
        active = tl.load(output + place, mask=inside, other=0.0) > 0
        d = tl.where(active, tl.load(gradient + place, mask=inside, other=0.0), 0.0)
        tl.store(gradient + place, d, mask=inside)
        acc += d.to(tl.float32)
    tl.store(sums + tl.program_id(1) * size + column, tl.sum(acc, 0), mask=column < size)


def mask_gradient(gradient: Float[Tensor, "rows size"], output: Float[Tensor, "rows size"]) -> Float[Tensor, " size"]:
    """Zero the gradient where the ReLU's output is 0, in place; returns its sums over rows in float32."""
    rows, size = output.shape
    column_tiles = triton.cdiv(size, WIDE)
    processors = torch.cuda.get_device_properties(output.device).multi_processor_count if output.is_cuda else 1
    count = max(1, min(triton.cdiv(rows, TALL), PROGRAMS * processors // column_tiles))
    sums = output.new_empty(count, size, dtype=torch.float32)
    with torch.cuda.device(output.device) if output.is_cuda else nullcontext():  # the device of Triton's launch
        backward_kernel[(column_tiles, count)](gradient, output, sums, rows, size, R=TALL, C=WIDE, num_warps=WARPS)
    return sums.sum(0)
