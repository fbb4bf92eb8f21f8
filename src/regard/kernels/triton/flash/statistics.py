"""Online statistics of each query, accumulated per thread and reduced over the four threads of a row at the end.

The accumulator layout of tensor cores has four threads per row (LANES), with two columns in every eight. Sums over the
columns of one thread need no shuffle, and column indices are compile-time constants, not registers: compiled for sm_90,
heads of 64 and tiles of 64 x 64, the loop over tiles has 295 instructions, and 408 with entropy, peak and mean position,
each of which takes one per column; 128 registers suffice without spilling.
"""

from typing import no_type_check

import triton
import triton.language as tl

LOWEST = tl.constexpr(-3e38)
"""The initial maximum: finite, so that 0 times its distance to a score is 0."""
NEVER = tl.constexpr(2**31 - 1)
"""Position beyond every key."""
WHOLE = tl.constexpr(32)
"""The most columns of a tile that are saved with the maximum: eight for each of four threads."""


@triton.jit
@no_type_check
def split_lanes(data, M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Reshape a tile by the thread that has a column: (M, 4, N / 4), without data movement.

    Without tensor cores it is (M, 1, N). With four threads in float32 beside a bias, Triton 3.6 computed wrong sums.
    """
    if LANES == 1:
        data = data[:, None, :]
    else:
        pairs = tl.reshape(data, [M, N // 8, 4, 2])
        data = tl.reshape(tl.permute(pairs, [0, 2, 1, 3]), [M, 4, N // 4])
    return data


@triton.jit
@no_type_check
def sum_per_lane(data, M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Sums per thread of a row: (M, 4, 1), or (M, 1, 1)."""
    return tl.sum(data, 1)[:, None, None] if LANES == 1 else tl.sum(split_lanes(data, M, N, LANES), 2, keep_dims=True)


@triton.jit
@no_type_check
def find_lane_columns(slot, LANES: tl.constexpr):
    """Column indices of the first thread in a tile; those of each next one are two further."""
    return slot if LANES == 1 else slot // 2 * 8 + slot % 2


@triton.jit
@no_type_check
def find_lane_offsets(LANES: tl.constexpr):
    """Offset of each thread's columns from those of the first."""
    return 2 * tl.arange(0, LANES)[None, :, None]


@triton.jit
@no_type_check
def split_halves(data, M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Split into the first and the last columns of each thread, which are half a tile apart."""
    return tl.split(tl.permute(tl.reshape(data, [M, LANES, 2, N // (2 * LANES)]), [0, 1, 3, 2]))


@triton.jit
@no_type_check
def start_peak(M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """The initial peak: the position of the saved columns, and their distance below the maximum."""
    distances: tl.constexpr = N // (2 * LANES) if N > WHOLE else N // LANES
    return tl.zeros([M, LANES, 1], tl.int32), tl.zeros([M, LANES, distances], tl.float32)


@triton.jit
@no_type_check
def update_peak(peak, scores, tile_max, risen, k0, M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Update the peak, which is in this tile where the maximum has risen; scores are per thread, the maximum finite.

    A thread saves its columns, of wider tiles the half with the maximum. That is one predicated instruction per column; the
    argmax among them is computed after the last tile.
    """
    start, distances = peak
    tile_max, risen = tile_max[:, None, None], risen[:, None, None]
    if N <= WHOLE:
        start, distances = tl.where(risen, k0, start), tl.where(risen, scores - tile_max, distances)
    else:
        early, late = split_halves(scores, M, N, LANES)
        in_early = tl.max(early, 2, keep_dims=True) == tile_max
        sooner, later = risen & in_early, risen & (in_early == 0)
        start, distances = tl.where(sooner, k0, start), tl.where(sooner, early - tile_max, distances)
        start, distances = tl.where(later, k0 + N // 2, start), tl.where(later, late - tile_max, distances)
    return start, distances


@triton.jit
@no_type_check
def find_argmax_key(peak, N: tl.constexpr, LANES: tl.constexpr):
    """The argmax key of a peak, the first of equal ones; 0 where the maximum is NaN."""
    start, distances = peak
    slot = tl.arange(0, N // (2 * LANES) if N > WHOLE else N // LANES)
    place = start + find_lane_columns(slot, LANES)[None, None, :] + find_lane_offsets(LANES)
    place = tl.min(tl.min(tl.where(distances == 0, place, NEVER), 2), 1)
    return tl.where(place == NEVER, 0, place)


@triton.jit
@no_type_check
def start_sums(M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Initial accumulators: peak, Σ p (s - max), Σ p (k - low); Σ p, mean and Σ p (k - mean)² of positions from `low` on."""
    none, row = tl.zeros([M, LANES, 1], tl.float32), tl.zeros([M], tl.float32)
    return start_peak(M, N, LANES), none, none, row, row, none


@triton.jit
@no_type_check
def update_sums(
    parts, scores, tile_max, below, p, mass, risen, change, total, rescale, allowed, k0, low,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Accumulate the statistics of a tile; its Σ p, mass, and that of the tiles before, total, are per thread."""
    peak, energy, moment, reach, mean, scatter = parts
    lane_rescale = rescale[:, None, None]
    if PEAK:
        if allowed is not None:
            tile_max = tl.maximum(tile_max, LOWEST)
        peak = update_peak(peak, split_lanes(scores, M, N, LANES), tile_max, risen, k0, M, N, LANES)
    if ENTROPIC:
        if allowed is not None:
            below = tl.maximum(below, -1e30)  # minus infinity times a weight of 0 would be NaN
        tile_sum = sum_per_lane(p * below, M, N, LANES)
        energy = lane_rescale * (energy + total * change[:, None, None]) + tile_sum
    if MOMENTS > 0:
        at = find_lane_columns(tl.arange(0, N // LANES), LANES)[None, None, :].to(tl.float32)
        share = split_lanes(p, M, N, LANES)
        tile_sum = tl.sum(share * at, 2, keep_dims=True)
    if MOMENTS == 1:
        moment = lane_rescale * moment + (tile_sum + (k0 - low) * mass)
    if MOMENTS == 2:  # means and variances are merged without squaring a far position
        added = reduce_lanes(mass)
        divisor = tl.where(added > 0, added, 1.0)
        middle = reduce_lanes(tile_sum + find_lane_offsets(LANES) * mass) / divisor
        deviation = at - (middle[:, None, None] - find_lane_offsets(LANES))
        step = middle + (k0 - low) - mean
        weight = added / (rescale * reach + divisor)
        joined = (1 / LANES) * step * step * weight * rescale * reach
        scatter = lane_rescale * scatter + tl.sum(share * deviation * deviation, 2, keep_dims=True) + joined[:, None, None]
        mean += step * weight
        reach = rescale * reach + added
    return peak, energy, moment, reach, mean, scatter


@triton.jit
@no_type_check
def finish_sums(parts, total, divisor, MOMENTS: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Final statistics of a row: argmax key, Σ p (s - max), and mean and variance of the position from `low` on."""
    peak, energy, moment, _, mean, scatter = parts
    if MOMENTS == 1:
        mean = reduce_lanes(moment + find_lane_offsets(LANES) * total) / divisor
    return find_argmax_key(peak, N, LANES), reduce_lanes(energy), mean, reduce_lanes(scatter) / divisor


@triton.jit
@no_type_check
def reduce_lanes(part):
    """Reduce over the threads of a row."""
    return tl.sum(tl.sum(part, 2), 1)
