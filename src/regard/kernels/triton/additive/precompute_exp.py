"""Precomputed exponentials e^{2x} of queries and keys, in the memory layout that `compare_kernel` reads.

It reads one hidden unit of a whole tile of queries or keys, so the exponentials are stored unit by unit, in panels as wide
as a tile, which a program reads contiguously. They are padded to whole tiles with e^0 = 1, so that no loop needs a mask.
Both q and k are computed by one launch.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive.score_rational import exponential

ROWS, UNITS = 32, 64
"""Rows and hidden units of a program's tile; `farthest` depends on the rows too."""


class RowRange(NamedTuple):
    """Some rows of some heads, numbered through the batch, and their padded number."""

    data: Float[Tensor, "batch heads time hidden"]
    heads: range
    rows: range
    tall: int


class Exponentials(NamedTuple):
    """e^{2x} in panels of rows, unit by unit, and the largest |x| of each block of ROWS rows."""

    data: Float[Tensor, "heads panels long wide"]
    reach: Float[Tensor, "heads blocks"]


def precompute_exponentials(
    left: RowRange, right: RowRange, high: int, down: int, across: int
) -> tuple[Exponentials, Exponentials]:
    """Exponentials of q and k, in panels of `down` and `across` rows, padded to `high` hidden units."""
    ours, theirs = _allocate(left, (left.tall // down, high, down)), _allocate(right, (right.tall // across, high, across))
    arguments = {
        **name_arguments("left", left, *ours),
        **name_arguments("right", right, *theirs),
        "D": left.data.shape[3],
        "high": high,
        "programs": ours.reach.numel(),
        "ROWS": ROWS,
        "UNITS": UNITS,
        "LEFT_PANEL": down,
        "RIGHT_PANEL": across,
    }
    launch_cached(exponentials_kernel, (ours.reach.numel() + theirs.reach.numel(), 1, 1), arguments, num_warps=4)
    return ours, theirs


def _allocate(side: RowRange, panels: tuple[int, int, int]) -> Exponentials:
    panels_data = side.data.new_empty(len(side.heads), *panels, dtype=torch.float32)
    return Exponentials(panels_data, blocks(side))


def blocks(side: RowRange) -> Float[Tensor, "heads blocks"]:
    """Allocate one number for each block of ROWS rows."""
    return side.data.new_empty(len(side.heads), -(-side.tall // ROWS), dtype=torch.float32)


def name_arguments(name: str, side: RowRange, output: Tensor, reach: Tensor) -> dict[str, object]:
    """The arguments of one side under the names of a kernel."""
    return {
        name: side.data,
        f"{name}_output": output,
        f"{name}_reach": reach,
        f"{name}_base": side.heads.start,
        f"{name}_begin": side.rows.start,
        f"{name}_count": len(side.rows),
        f"{name}_time": side.data.shape[2],
        f"{name}_tall": side.tall,
    }


@triton.jit(
    do_not_specialize=[
        "left_base", "left_begin", "left_count", "left_time", "right_base", "right_begin", "right_count", "right_time",
        "programs",
    ]
)  # fmt: skip
@no_type_check
def exponentials_kernel(
    left, right, left_output, right_output, left_reach, right_reach,
    left_base, left_begin, left_count, left_time, left_tall, right_base, right_begin, right_count, right_time, right_tall,
    D, high, programs,
    ROWS: tl.constexpr, UNITS: tl.constexpr, LEFT_PANEL: tl.constexpr, RIGHT_PANEL: tl.constexpr,
):  # fmt: skip
    """Kernel over both sides: the first `programs` have a block of the left side each, the others one of the right."""
    number = tl.program_id(0)
    if number < programs:
        write_block(
            left, left_output, left_reach, number, left_base, left_begin, left_count, left_time, D, left_tall, high,
            ROWS, UNITS, LEFT_PANEL,
        )  # fmt: skip
    else:
        write_block(
            right, right_output, right_reach, number - programs, right_base, right_begin, right_count, right_time, D,
            right_tall, high, ROWS, UNITS, RIGHT_PANEL,
        )  # fmt: skip


@triton.jit
@no_type_check
def write_block(
    data, output, reach, number, base, begin, count, T, D, tall, high,
    ROWS: tl.constexpr, UNITS: tl.constexpr, PANEL: tl.constexpr,
):  # fmt: skip
    """Write e^{2x} of ROWS rows, and max |x| without NaN; overflowed exponentials are never read."""
    blocks = (tall + ROWS - 1) // ROWS
    local = (number // blocks).to(tl.int64)
    places = number % blocks * ROWS + tl.arange(0, ROWS)
    data += ((base + local) * T + begin) * D
    output += local * tall * high
    largest = tl.zeros((ROWS, UNITS), tl.float32)
    for unit in range(0, high, UNITS):
        units = unit + tl.arange(0, UNITS)
        inside = (places < count)[:, None] & (units < D)[None, :]
        x = tl.load(data + places.to(tl.int64)[:, None] * D + units[None, :], mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(tl.where(x == x, x, 0.0)))
        x = tl.where(tl.abs(x) > 40.0, 0.0, x)
        cells = (places // PANEL * (high * PANEL) + places % PANEL)[:, None] + (units * PANEL)[None, :]
        tl.store(output + cells, exponential(x), mask=(places < tall)[:, None] & (units < high)[None, :])
    tl.store(reach + number, tl.max(tl.max(largest, axis=1), axis=0))


@triton.jit
@no_type_check
def load_largest(reach, first, COUNT: tl.constexpr):
    """The largest |x| of the blocks that overlap COUNT rows from `first` on."""
    largest = tl.load(reach + first // 32)
    for block in tl.static_range(1, (COUNT + 31) // 32):
        largest = tl.maximum(largest, tl.load(reach + first // 32 + block))
    return largest
