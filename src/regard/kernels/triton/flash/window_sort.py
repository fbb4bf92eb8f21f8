"""The queries of a row by where their windows stand: a counting sort that is stable, in two launches.

One program for each tile of queries counts how many stand in each stretch of the keys; then one for each adds up what all
others counted, and knows the places of its own.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash import launch_window_sort as launch

FAR, OUTSIDE, WHOLE = (tl.constexpr(each) for each in (launch.FAR, launch.OUTSIDE, launch.WHOLE))


@triton.jit
@no_type_check
def stretch_of(centre, keys, stretch):
    """In which stretch of the keys a window stands; what is before, behind or no number is put at an end."""
    last = (keys - 1) // stretch
    near = tl.minimum(tl.where(centre > 0, centre, 0.0), keys * 1.0)  # 0 in place of NaN too
    return tl.minimum(near.to(tl.int32) // stretch, last)


@triton.jit(do_not_specialize=["queries", "keys"])
@no_type_check
def tally(centres, tallies, queries, keys, STRETCH: tl.constexpr, BINS: tl.constexpr, M: tl.constexpr):
    """How many of the M queries of a tile stand in each stretch, and behind that in which stretch each of them does."""
    tile, b = tl.program_id(0), tl.program_id(1)
    q = tile * M + tl.arange(0, M)
    centre = tl.load(centres + b.to(tl.int64) * queries + q, mask=q < queries, other=0.0)
    stands = stretch_of(centre, keys, STRETCH)
    counts = tl.histogram(stands, BINS, mask=q < queries)
    row = tallies + (b.to(tl.int64) * tl.num_programs(0) + tile) * (BINS + M)
    tl.store(row + tl.arange(0, BINS), counts.to(tallies.dtype.element_ty))
    tl.store(row + BINS + tl.arange(0, M), stands.to(tallies.dtype.element_ty))


@triton.jit(do_not_specialize=["queries", "keys"])
@no_type_check
def order(
    centres, tallies, found, ends, placed, queries, keys,
    STRETCH: tl.constexpr, BINS: tl.constexpr, STEP: tl.constexpr,
    PART: tl.constexpr, M: tl.constexpr,
):  # fmt: skip
    """Where the M queries of a tile stand among those of their row; the first tile says where each stretch ends.

    A query's place is how many stand in earlier stretches, and how many that come before it in its own. STEP tiles are added
    up at once, and PART queries of a tile compared: a short program is read faster than a long one without loops.
    """
    tile, b = tl.program_id(0), tl.program_id(1)
    count, row = tl.num_programs(0), b.to(tl.int64) * queries
    q, bins = tile * M + tl.arange(0, M), tl.arange(0, BINS)
    real = q < queries
    centre = tl.load(centres + row + q, mask=real, other=0.0)
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
        stretches = (keys - 1) // STRETCH + 1
        tl.store(ends + b.to(tl.int64) * stretches + bins, until, mask=bins < stretches)
    own = tallies + (b.to(tl.int64) * count + tile) * (BINS + M) + BINS
    column = tl.arange(0, M)
    stands = tl.load(own + column).to(tl.int32)
    earlier = tl.zeros([M, PART], tl.int32)
    for start in range(0, tl.minimum(M, queries - tile * M), PART):
        other = start + tl.arange(0, PART)
        same = tl.load(own + other).to(tl.int32)[None, :] == stands[:, None]
        earlier += (same & (other[None, :] < column[:, None])).to(tl.int32)
    place = tl.gather(until - all + before, stands, 0) + tl.sum(earlier, 1)
    tl.store(found + row + place, q, mask=real)
    centre = tl.clamp(centre, -OUTSIDE, OUTSIDE, propagate_nan=tl.PropagateNan.ALL)
    long = (queries + WHOLE - 1) // WHOLE * WHOLE
    tl.store(placed + b.to(tl.int64) * long + tl.where(real, place, q), tl.where(real, centre, -FAR), mask=q < long)
