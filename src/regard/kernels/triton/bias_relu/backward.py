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
def backward_kernel(flowing, came, sums, rows, size, R: tl.constexpr, C: tl.constexpr):
    """Kernel of some columns and tiles of R rows in a grid-stride loop."""
    column = tl.program_id(0) * C + tl.arange(0, C)
    found = tl.zeros([R, C], tl.float32)
    for first in range(tl.program_id(1) * R, rows, tl.num_programs(1) * R):
        row = first + tl.arange(0, R)
        inside = (row < rows)[:, None] & (column < size)[None, :]
        place = row.to(tl.int64)[:, None] * size + column[None, :]
        open_ = tl.load(came + place, mask=inside, other=0.0) > 0
        d = tl.where(open_, tl.load(flowing + place, mask=inside, other=0.0), 0.0)
        tl.store(flowing + place, d, mask=inside)
        found += d.to(tl.float32)
    tl.store(sums + tl.program_id(1) * size + column, tl.sum(found, 0), mask=column < size)


def mask_gradient(flowing: Float[Tensor, "rows size"], came: Float[Tensor, "rows size"]) -> Float[Tensor, " size"]:
    """Zero the gradient where the ReLU's output is 0, in place; returns its sums over rows in float32."""
    rows, size = came.shape
    across = triton.cdiv(size, WIDE)
    processors = torch.cuda.get_device_properties(came.device).multi_processor_count if came.is_cuda else 1
    count = max(1, min(triton.cdiv(rows, TALL), PROGRAMS * processors // across))
    sums = came.new_empty(count, size, dtype=torch.float32)
    with torch.cuda.device(came.device) if came.is_cuda else nullcontext():  # the device of Triton's launch
        backward_kernel[(across, count)](flowing, came, sums, rows, size, R=TALL, C=WIDE, num_warps=WARPS)
    return sums.sum(0)
