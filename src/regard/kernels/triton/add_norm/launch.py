"""Launchers of the fused residual add and norm: outputs, grids and tiles."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.kernels.triton.add_norm import kernel

TILE_ELEMENTS, WARP = 1024, 512
"""Elements of a program's tile, unless its rows are longer, and of a warp."""
PROGRAMS = 8
"""Programs of the backward per multiprocessor: each accumulates the gradients of vectors over its rows."""
Rows = Float[Tensor, "rows size"]
Vector = Float[Tensor, " size"]


class NormArguments(NamedTuple):
    """Arguments of both directions: norm, dropout and padding mask."""

    weight: Vector
    shift: Vector | None = None
    eps: float = 1e-5
    rms: bool = False
    """True for RMSNorm, without the mean."""
    seed: Int[Tensor, "1"] | None = None
    chance: float = 0.0
    keep: Bool[Tensor, " rows"] | None = None


class ForwardOutput(NamedTuple):
    """Outputs of the forward: the residual sum (or `data` alone), its norm, and the tensors saved for the backward."""

    total: Rows
    wide: Rows | None
    entered: Rows | None
    centres: Float[Tensor, " rows"]
    scales: Float[Tensor, " rows"]


class Gradients(NamedTuple):
    """Gradients of all inputs that have one."""

    data: Rows
    sublayer: Rows | None
    weight: Vector
    shift: Vector
    added: Vector | None


def forward(
    data: Rows, sublayer: Rows | None, added: Vector | None, arguments: NormArguments, wide: bool, half: torch.dtype | None
) -> ForwardOutput:
    """Residual sum and norm: in the precision of the data if `wide`, and in `half` if given.

    `added` is the bias of the sublayer's output.
    """
    rows, size = data.shape
    numbers = data.new_empty(2, rows, dtype=torch.float32)
    outputs = ForwardOutput(
        data if sublayer is None else torch.empty_like(data),
        torch.empty_like(data) if wide else None,
        None if half is None else torch.empty_like(data, dtype=half),
        *numbers.unbind(),
    )
    tall, block, warps = select_tile(size)
    with _use_device(data):
        kernel.forward[(triton.cdiv(rows, tall),)](
            data, sublayer, added, arguments.weight, arguments.shift, arguments.seed, arguments.keep, *outputs, rows, size,
            arguments.eps, arguments.chance, RMS=arguments.rms, R=tall, BLOCK=block, num_warps=warps,
        )  # fmt: skip
    return outputs


def backward(
    outputs: ForwardOutput, arguments: NormArguments, kind: torch.dtype | None, adds: bool, *gradients: Rows | None
) -> Gradients:
    """Backward from the gradients of the sum, the wide norm and the half-precision norm.

    `kind` is the precision of the sublayer's output, if any; `adds` is True if a bias was added to it.
    """
    total, (rows, size) = outputs.total, outputs.total.shape
    tall, block, warps = select_tile(size)
    count = min(triton.cdiv(rows, tall), PROGRAMS * count_multiprocessors(total))
    d_data = torch.empty_like(total)
    d_sublayer = None if kind is None else torch.empty_like(total, dtype=kind)
    sums = total.new_empty(count, 3 if adds else 2, size, dtype=torch.float32)
    with _use_device(total):
        kernel.backward[(count,)](
            total, arguments.weight, arguments.seed, arguments.keep, outputs.centres, outputs.scales, *gradients,
            d_data, d_sublayer, sums, rows, size, arguments.chance,
            RMS=arguments.rms, ADDED=adds, R=tall, BLOCK=block, num_warps=warps,
        )  # fmt: skip
    gains, shifts, *bias_sums = sums.sum(0).unbind()
    return Gradients(d_data, d_sublayer, gains, shifts, bias_sums[0] if bias_sums else None)


def select_tile(size: int) -> tuple[int, int, int]:
    """Rows of a program's tile, their padded width, and its warps."""
    block = max(16, triton.next_power_of_2(size))
    tall = max(1, TILE_ELEMENTS // block)
    return tall, block, max(2, tall * block // WARP)


def count_multiprocessors(like: Tensor) -> int:
    """The number of multiprocessors; one in the interpreter."""
    return torch.cuda.get_device_properties(like.device).multi_processor_count if like.is_cuda else 1


def _use_device(like: Tensor) -> AbstractContextManager[Any]:
    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()  # the device of Triton's launch
