"""e^{2x} of some queries or keys, once for a whole pass, in single precision and in the order in which the pass reads them.

`compare` reads one hidden unit of a whole tile of queries or keys, so that its exponentials lie unit by unit; `gather` reads
one query or key after another, a few units of each. Either lies in panels as wide as a tile, which a program reads from one
end to the other, and is padded to whole tiles with e^0 = 1, so that no loop has to ask where the data end.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton.arguments import on
from regard.kernels.additive_triton.rational import exponential

ROWS, UNITS = 32, 64
"""Of a tile that is raised at a time."""


class Powers(NamedTuple):
    """e^{2x} in panels of rows, unit by unit, or of units, row by row; and the largest |x| of each row."""

    data: Float[Tensor, "heads panels long wide"]
    reach: Float[Tensor, "heads padded_rows"]


def by_unit(
    data: Float[Tensor, "batch heads time hidden"], these: range, rows: range, tall: int, high: int, panel: int
) -> Powers:
    """Of some heads, counted through the batch, and some rows of each, padded to `tall` rows and `high` hidden units."""
    return _powers(data, these, rows, (tall // panel, high, panel), tall, high, False)


def by_row(
    data: Float[Tensor, "batch heads time hidden"], these: range, rows: range, tall: int, high: int, panel: int
) -> Powers:
    """The same row by row. NaN counts as 0: ds of what nobody may see is 0, and of what is seen it is NaN."""
    return _powers(data, these, rows, (high // panel, tall, panel), tall, high, True)


def _powers(
    data: Tensor, these: range, rows: range, panels: tuple[int, int, int], tall: int, high: int, flat: bool
) -> Powers:
    found = data.new_empty(len(these), *panels, dtype=torch.float32)
    reach = data.new_empty(len(these), tall, dtype=torch.float32)
    with on(data):
        raised[(triton.cdiv(tall, ROWS), len(these))](
            data=data,
            found=found,
            reach=reach,
            base=these.start,
            begin=rows.start,
            count=len(rows),
            T=data.shape[2],
            D=data.shape[3],
            tall=tall,
            high=high,
            ROWS=ROWS,
            UNITS=UNITS,
            PANEL=panels[2],
            FLAT=flat,
            num_warps=4,
        )
    return Powers(found, reach)


@triton.jit(do_not_specialize=["base", "begin", "count", "T"])
@no_type_check
def raised(
    data, found, reach, base, begin, count, T, D, tall, high,
    ROWS: tl.constexpr, UNITS: tl.constexpr, PANEL: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """e^{2x} of ROWS rows, and max |x|, in which NaN has no part. Beyond what a tile may take apart nobody reads it."""
    local = tl.program_id(1).to(tl.int64)
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    data += ((base + local) * T + begin) * D
    found += local * tall * high
    far = tl.zeros((ROWS,), tl.float32)
    for unit in range(0, high, UNITS):
        units = unit + tl.arange(0, UNITS)
        inside = (places < count)[:, None] & (units < D)[None, :]
        x = tl.load(data + places.to(tl.int64)[:, None] * D + units[None, :], mask=inside, other=0.0).to(tl.float32)
        calm = tl.where(x == x, x, 0.0)
        far = tl.maximum(far, tl.max(tl.abs(calm), axis=1))
        x = calm if FLAT else x
        x = tl.where(tl.abs(x) > 40.0, 0.0, x)
        if FLAT:
            cells = (units // PANEL * (tall * PANEL) + units % PANEL)[None, :] + (places * PANEL)[:, None]
        else:
            cells = (places // PANEL * (high * PANEL) + places % PANEL)[:, None] + (units * PANEL)[None, :]
        tl.store(found + cells, exponential(x), mask=(places < tall)[:, None] & (units < high)[None, :])
    tl.store(reach + local * tall + places, far, mask=places < tall)
