"""e^{2x} of some queries and keys, once for a whole pass, in the order in which `compare` reads them.

It reads one hidden unit of a whole tile of queries or keys, so that the exponentials lie unit by unit, in panels as wide as
a tile, which a program reads from one end to the other. They are padded to whole tiles with e^0 = 1, so that no loop has to
ask where the data end. Both sides are raised by one launch.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.launch_cache import start
from regard.kernels.triton.additive.score_rational import exponential

ROWS, UNITS = 32, 64
"""Of a tile that is raised at a time; `farthest` knows the rows too."""


class Some(NamedTuple):
    """Some rows of some heads, which are counted through the batch, and how many rows they are padded to."""

    data: Float[Tensor, "batch heads time hidden"]
    heads: range
    rows: range
    tall: int


class Powers(NamedTuple):
    """e^{2x} in panels of rows, unit by unit, and the largest |x| of each block of ROWS rows."""

    data: Float[Tensor, "heads panels long wide"]
    reach: Float[Tensor, "heads blocks"]


def by_unit(left: Some, right: Some, high: int, down: int, across: int) -> tuple[Powers, Powers]:
    """Of both sides, in panels of `down` and `across` rows, padded to `high` hidden units."""
    ours, theirs = _empty(left, (left.tall // down, high, down)), _empty(right, (right.tall // across, high, across))
    given = {
        **told("left", left, *ours),
        **told("right", right, *theirs),
        "D": left.data.shape[3],
        "high": high,
        "programs": ours.reach.numel(),
        "ROWS": ROWS,
        "UNITS": UNITS,
        "LEFT_PANEL": down,
        "RIGHT_PANEL": across,
    }
    start(raised, (ours.reach.numel() + theirs.reach.numel(), 1, 1), given, num_warps=4)
    return ours, theirs


def _empty(side: Some, panels: tuple[int, int, int]) -> Powers:
    found = side.data.new_empty(len(side.heads), *panels, dtype=torch.float32)
    return Powers(found, blocks(side))


def blocks(side: Some) -> Float[Tensor, "heads blocks"]:
    """A number for each block of ROWS rows."""
    return side.data.new_empty(len(side.heads), -(-side.tall // ROWS), dtype=torch.float32)


def told(name: str, side: Some, found: Tensor, reach: Tensor) -> dict[str, object]:
    """As a kernel names them."""
    return {
        name: side.data,
        f"{name}_found": found,
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
def raised(
    left, right, left_found, right_found, left_reach, right_reach,
    left_base, left_begin, left_count, left_time, left_tall, right_base, right_begin, right_count, right_time, right_tall,
    D, high, programs,
    ROWS: tl.constexpr, UNITS: tl.constexpr, LEFT_PANEL: tl.constexpr, RIGHT_PANEL: tl.constexpr,
):  # fmt: skip
    """The first so many `programs` raise a block of the left side each, the others one of the right."""
    number = tl.program_id(0)
    if number < programs:
        block(
            left, left_found, left_reach, number, left_base, left_begin, left_count, left_time, D, left_tall, high,
            ROWS, UNITS, LEFT_PANEL,
        )  # fmt: skip
    else:
        block(
            right, right_found, right_reach, number - programs, right_base, right_begin, right_count, right_time, D,
            right_tall, high, ROWS, UNITS, RIGHT_PANEL,
        )  # fmt: skip


@triton.jit
@no_type_check
def block(
    data, found, reach, number, base, begin, count, T, D, tall, high,
    ROWS: tl.constexpr, UNITS: tl.constexpr, PANEL: tl.constexpr,
):  # fmt: skip
    """e^{2x} of ROWS rows, and max |x|, in which NaN has no part. Beyond what a tile may take apart nobody reads it."""
    blocks = (tall + ROWS - 1) // ROWS
    local = (number // blocks).to(tl.int64)
    places = number % blocks * ROWS + tl.arange(0, ROWS)
    data += ((base + local) * T + begin) * D
    found += local * tall * high
    far = tl.zeros((ROWS, UNITS), tl.float32)
    for unit in range(0, high, UNITS):
        units = unit + tl.arange(0, UNITS)
        inside = (places < count)[:, None] & (units < D)[None, :]
        x = tl.load(data + places.to(tl.int64)[:, None] * D + units[None, :], mask=inside, other=0.0).to(tl.float32)
        far = tl.maximum(far, tl.abs(tl.where(x == x, x, 0.0)))
        x = tl.where(tl.abs(x) > 40.0, 0.0, x)
        cells = (places // PANEL * (high * PANEL) + places % PANEL)[:, None] + (units * PANEL)[None, :]
        tl.store(found + cells, exponential(x), mask=(places < tall)[:, None] & (units < high)[None, :])
    tl.store(reach + number, tl.max(tl.max(far, axis=1), axis=0))


@triton.jit
@no_type_check
def farthest(reach, first, COUNT: tl.constexpr):
    """The largest |x| of the blocks that COUNT rows from `first` on belong to, or touch."""
    found = tl.load(reach + first // 32)
    for block in tl.static_range(1, (COUNT + 31) // 32):
        found = tl.maximum(found, tl.load(reach + first // 32 + block))
    return found
