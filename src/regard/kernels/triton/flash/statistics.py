"""Online statistics of each query, accumulated per thread and reduced over the four threads of a row at the end.

The accumulator layout of tensor cores has four threads per row (HANDS), with two columns in every eight. Sums over the
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
def split_lanes(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Reshape a tile by the thread that has a column: (M, 4, N / 4), without data movement.

    Without tensor cores it is (M, 1, N). With four threads in float32 beside a bias, Triton 3.6 computed wrong sums.
    """
    if HANDS == 1:
        data = data[:, None, :]
    else:
        pairs = tl.reshape(data, [M, N // 8, 4, 2])
        data = tl.reshape(tl.permute(pairs, [0, 2, 1, 3]), [M, 4, N // 4])
    return data


@triton.jit
@no_type_check
def sum_per_lane(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Sums per thread of a row: (M, 4, 1), or (M, 1, 1)."""
    return tl.sum(data, 1)[:, None, None] if HANDS == 1 else tl.sum(split_lanes(data, M, N, HANDS), 2, keep_dims=True)


@triton.jit
@no_type_check
def find_lane_columns(slot, HANDS: tl.constexpr):
    """Column indices of the first thread in a tile; those of each next one are two further."""
    return slot if HANDS == 1 else slot // 2 * 8 + slot % 2


@triton.jit
@no_type_check
def find_lane_offsets(HANDS: tl.constexpr):
    """Offset of each thread's columns from those of the first."""
    return 2 * tl.arange(0, HANDS)[None, :, None]


@triton.jit
@no_type_check
def split_halves(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Split into the first and the last columns of each thread, which are half a tile apart."""
    return tl.split(tl.permute(tl.reshape(data, [M, HANDS, 2, N // (2 * HANDS)]), [0, 1, 3, 2]))


@triton.jit
@no_type_check
def start_peak(M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """The initial peak: the position of the saved columns, and their distance below the maximum."""
    kept: tl.constexpr = N // (2 * HANDS) if N > WHOLE else N // HANDS
    return tl.zeros([M, HANDS, 1], tl.int32), tl.zeros([M, HANDS, kept], tl.float32)


@triton.jit
@no_type_check
def update_peak(peak, scores, most, risen, k0, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Update the peak, which is in this tile where the maximum has risen; scores are per thread, the maximum finite.

    A thread saves its columns, of wider tiles the half with the maximum. That is one predicated instruction per column; the
    argmax among them is computed after the last tile.
    """
    start, kept = peak
    most, risen = most[:, None, None], risen[:, None, None]
    if N <= WHOLE:
        start, kept = tl.where(risen, k0, start), tl.where(risen, scores - most, kept)
    else:
        early, late = split_halves(scores, M, N, HANDS)
        found = tl.max(early, 2, keep_dims=True) == most
        sooner, later = risen & found, risen & (found == 0)
        start, kept = tl.where(sooner, k0, start), tl.where(sooner, early - most, kept)
        start, kept = tl.where(later, k0 + N // 2, start), tl.where(later, late - most, kept)
    return start, kept


@triton.jit
@no_type_check
def find_argmax_key(peak, N: tl.constexpr, HANDS: tl.constexpr):
    """The argmax key of a peak, the first of equal ones; 0 where the maximum is NaN."""
    start, kept = peak
    slot = tl.arange(0, N // (2 * HANDS) if N > WHOLE else N // HANDS)
    place = start + find_lane_columns(slot, HANDS)[None, None, :] + find_lane_offsets(HANDS)
    place = tl.min(tl.min(tl.where(kept == 0, place, NEVER), 2), 1)
    return tl.where(place == NEVER, 0, place)


@triton.jit
@no_type_check
def start_sums(M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Initial accumulators: peak, Σ p (s - max), Σ p (k - low); Σ p, mean and Σ p (k - mean)² of positions from `low` on."""
    none, row = tl.zeros([M, HANDS, 1], tl.float32), tl.zeros([M], tl.float32)
    return start_peak(M, N, HANDS), none, none, row, row, none


@triton.jit
@no_type_check
def update_sums(
    parts, scores, most, below, p, mass, risen, change, total, falls, seen, k0, low,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr,
):  # fmt: skip
    """Accumulate the statistics of a tile; its Σ p, mass, and that of the tiles before, total, are per thread."""
    peak, energy, moment, reach, mean, scatter = parts
    fallen = falls[:, None, None]
    if PEAK:
        if seen is not None:
            most = tl.maximum(most, LOWEST)
        peak = update_peak(peak, split_lanes(scores, M, N, HANDS), most, risen, k0, M, N, HANDS)
    if ENTROPIC:
        if seen is not None:
            below = tl.maximum(below, -1e30)  # minus infinity times a weight of 0 would be NaN
        here = sum_per_lane(p * below, M, N, HANDS)
        energy = fallen * (energy + total * change[:, None, None]) + here
    if MOMENTS > 0:
        at = find_lane_columns(tl.arange(0, N // HANDS), HANDS)[None, None, :].to(tl.float32)
        share = split_lanes(p, M, N, HANDS)
        here = tl.sum(share * at, 2, keep_dims=True)
    if MOMENTS == 1:
        moment = fallen * moment + (here + (k0 - low) * mass)
    if MOMENTS == 2:  # means and variances are merged without squaring a far position
        added = reduce_lanes(mass)
        some = tl.where(added > 0, added, 1.0)
        middle = reduce_lanes(here + find_lane_offsets(HANDS) * mass) / some
        away = at - (middle[:, None, None] - find_lane_offsets(HANDS))
        step = middle + (k0 - low) - mean
        weight = added / (falls * reach + some)
        joined = (1 / HANDS) * step * step * weight * falls * reach
        scatter = fallen * scatter + tl.sum(share * away * away, 2, keep_dims=True) + joined[:, None, None]
        mean += step * weight
        reach = falls * reach + added
    return peak, energy, moment, reach, mean, scatter


@triton.jit
@no_type_check
def finish_sums(parts, total, divisor, MOMENTS: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Final statistics of a row: argmax key, Σ p (s - max), and mean and variance of the position from `low` on."""
    peak, energy, moment, _, mean, scatter = parts
    if MOMENTS == 1:
        mean = reduce_lanes(moment + find_lane_offsets(HANDS) * total) / divisor
    return find_argmax_key(peak, N, HANDS), reduce_lanes(energy), mean, reduce_lanes(scatter) / divisor


@triton.jit
@no_type_check
def reduce_lanes(part):
    """Reduce over the threads of a row."""
    return tl.sum(tl.sum(part, 2), 1)
