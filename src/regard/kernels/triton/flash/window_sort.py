"""Stable counting sort of the queries of a row by the bins of their windows, in two launches.

One program for each tile of queries counts them per bin of keys; then one for each tile sums all counts, from which the
positions of its own queries follow.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash import launch_window_sort as launch

FAR, OUTSIDE, WHOLE = (tl.constexpr(constant) for constant in (launch.FAR, launch.OUTSIDE, launch.PADDING))


@triton.jit
@no_type_check
def find_bin(centre, keys, bin_width):
    """Bin of a window's centre, clamped to the first and the last; NaN is in the first."""
    last = (keys - 1) // bin_width
    near = tl.minimum(tl.where(centre > 0, centre, 0.0), keys * 1.0)  # 0 in place of NaN too
    return tl.minimum(near.to(tl.int32) // bin_width, last)


@triton.jit(do_not_specialize=["queries", "keys"])
@no_type_check
def count_kernel(centres, tallies, queries, keys, BIN_WIDTH: tl.constexpr, BINS: tl.constexpr, M: tl.constexpr):
    """Kernel that writes the counts per bin of the M queries of a tile, and then the bin of each of them."""
    tile, b = tl.program_id(0), tl.program_id(1)
    m = tile * M + tl.arange(0, M)
    centre = tl.load(centres + b.to(tl.int64) * queries + m, mask=m < queries, other=0.0)
    own_bins = find_bin(centre, keys, BIN_WIDTH)
    counts = tl.histogram(own_bins, BINS, mask=m < queries)
    row = tallies + (b.to(tl.int64) * tl.num_programs(0) + tile) * (BINS + M)
    tl.store(row + tl.arange(0, BINS), counts.to(tallies.dtype.element_ty))
    tl.store(row + BINS + tl.arange(0, M), own_bins.to(tallies.dtype.element_ty))


@triton.jit(do_not_specialize=["queries", "keys"])
@no_type_check
def order_kernel(
    centres, tallies, order, ends, sorted_centres, queries, keys,
    BIN_WIDTH: tl.constexpr, BINS: tl.constexpr, STEP: tl.constexpr,
    PART: tl.constexpr, M: tl.constexpr,
):  # fmt: skip
    """Kernel of the sorted positions of the M queries of a tile; the first tile writes the end of each bin.

    The position is the number of queries in earlier bins, and of earlier queries in its own. STEP tiles are summed per
    iteration, and PART queries of a tile compared: short code loads faster than long unrolled code.
    """
    tile, b = tl.program_id(0), tl.program_id(1)
    count, row = tl.num_programs(0), b.to(tl.int64) * queries
    m, bins = tile * M + tl.arange(0, M), tl.arange(0, BINS)
    inside = m < queries
    centre = tl.load(centres + row + m, mask=inside, other=0.0)
    in_all = tl.zeros([STEP, BINS], tl.int32)
    in_earlier = tl.zeros([STEP, BINS], tl.int32)
    for start in range(0, count, STEP):
        other = start + tl.arange(0, STEP)
        at = tallies + (b.to(tl.int64) * count + other)[:, None] * (BINS + M) + bins[None, :]
        counts = tl.load(at, mask=(other < count)[:, None], other=0).to(tl.int32)
        in_all += counts
        in_earlier += tl.where((other < tile)[:, None], counts, 0)
    all, before = tl.sum(in_all, 0), tl.sum(in_earlier, 0)
    until = tl.cumsum(all, 0)
    if tile == 0:
        bin_count = (keys - 1) // BIN_WIDTH + 1
        tl.store(ends + b.to(tl.int64) * bin_count + bins, until, mask=bins < bin_count)
    own = tallies + (b.to(tl.int64) * count + tile) * (BINS + M) + BINS
    column = tl.arange(0, M)
    own_bins = tl.load(own + column).to(tl.int32)
    earlier = tl.zeros([M, PART], tl.int32)
    for start in range(0, tl.minimum(M, queries - tile * M), PART):
        other = start + tl.arange(0, PART)
        same = tl.load(own + other).to(tl.int32)[None, :] == own_bins[:, None]
        earlier += (same & (other[None, :] < column[:, None])).to(tl.int32)
    slot = tl.gather(until - all + before, own_bins, 0) + tl.sum(earlier, 1)
    tl.store(order + row + slot, m, mask=inside)
    centre = tl.clamp(centre, -OUTSIDE, OUTSIDE, propagate_nan=tl.PropagateNan.ALL)
    padded = (queries + WHOLE - 1) // WHOLE * WHOLE
    tl.store(
        sorted_centres + b.to(tl.int64) * padded + tl.where(inside, slot, m), tl.where(inside, centre, -FAR), mask=m < padded
    )
