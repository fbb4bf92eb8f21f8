"""Where each query looked, in sums that stay apart for the four threads of a row until the last tile of keys.

Tensor cores leave a row of a tile to four hands, threads with two columns in every eight. Sums over the columns of one
thread need no exchange, and what belongs to a column is a constant of the program, not a register: compiled for sm_90, heads
of 64 and tiles of 64 x 64, the loop over tiles has 295 instructions, and 408 with entropy, peak and mean position, each of
which takes one for a column; 128 registers suffice, and none is spilled.
"""

from typing import no_type_check

import triton
import triton.language as tl

LOWEST = tl.constexpr(-3e38)
"""The highest score of nothing: a number, so that none of it times how far that is passed is nothing."""
NEVER = tl.constexpr(2**31 - 1)
"""Behind every key."""
WHOLE = tl.constexpr(32)
"""Columns of a tile at most that are kept whole where the highest score is: eight for each of four hands."""


@triton.jit
@no_type_check
def dealt(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """A tile by the hand that has a column: (M, 4, N / 4). Nothing is moved.

    Where no tensor core multiplies there is one hand: (M, 1, N). Dealt to four in single precision beside a bias, Triton
    3.6 summed other numbers than were there.
    """
    if HANDS == 1:
        data = data[:, None, :]
    else:
        pairs = tl.reshape(data, [M, N // 8, 4, 2])
        data = tl.reshape(tl.permute(pairs, [0, 2, 1, 3]), [M, 4, N // 4])
    return data


@triton.jit
@no_type_check
def summed(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """What each hand of a row has together: (M, 4, 1), or (M, 1, 1)."""
    return tl.sum(data, 1)[:, None, None] if HANDS == 1 else tl.sum(dealt(data, M, N, HANDS), 2, keep_dims=True)


@triton.jit
@no_type_check
def column(slot, HANDS: tl.constexpr):
    """Where the columns of the first hand stand in a tile; those of each next one stand two further."""
    return slot if HANDS == 1 else slot // 2 * 8 + slot % 2


@triton.jit
@no_type_check
def behind(HANDS: tl.constexpr):
    """How far the columns of each hand stand behind those of the first."""
    return 2 * tl.arange(0, HANDS)[None, :, None]


@triton.jit
@no_type_check
def halves(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """The first and the last columns of each hand; the last stand half a tile behind the first."""
    return tl.split(tl.permute(tl.reshape(data, [M, HANDS, 2, N // (2 * HANDS)]), [0, 1, 3, 2]))


@triton.jit
@no_type_check
def unseen(M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """A peak of nothing yet, which is at 0: where the kept columns begin, and how far below the highest they are."""
    kept: tl.constexpr = N // (2 * HANDS) if N > WHOLE else N // HANDS
    return tl.zeros([M, HANDS, 1], tl.int32), tl.zeros([M, HANDS, kept], tl.float32)


@triton.jit
@no_type_check
def raised(peak, scores, most, risen, k0, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """The peak, which is in this tile where it has risen; scores are dealt, and the largest of a row is a number.

    A hand keeps its columns, of wider tiles the half that has the largest. To keep one is a single instruction, which the
    others skip; which of them it is, is asked when the last tile is done.
    """
    start, kept = peak
    most, risen = most[:, None, None], risen[:, None, None]
    if N <= WHOLE:
        start, kept = tl.where(risen, k0, start), tl.where(risen, scores - most, kept)
    else:
        early, late = halves(scores, M, N, HANDS)
        found = tl.max(early, 2, keep_dims=True) == most
        sooner, later = risen & found, risen & (found == 0)
        start, kept = tl.where(sooner, k0, start), tl.where(sooner, early - most, kept)
        start, kept = tl.where(later, k0 + N // 2, start), tl.where(later, late - most, kept)
    return start, kept


@triton.jit
@no_type_check
def first(peak, N: tl.constexpr, HANDS: tl.constexpr):
    """The key of a peak, of equal ones the first; 0 where the highest score is no number."""
    start, kept = peak
    slot = tl.arange(0, N // (2 * HANDS) if N > WHOLE else N // HANDS)
    place = start + column(slot, HANDS)[None, None, :] + behind(HANDS)
    place = tl.min(tl.min(tl.where(kept == 0, place, NEVER), 2), 1)
    return tl.where(place == NEVER, 0, place)


@triton.jit
@no_type_check
def begin(M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Of nothing: the peak, Σ p (s - highest), Σ p (k - low); Σ p, mean and Σ p (k - mean)² of positions from `low` on."""
    none, row = tl.zeros([M, HANDS, 1], tl.float32), tl.zeros([M], tl.float32)
    return unseen(M, N, HANDS), none, none, row, row, none


@triton.jit
@no_type_check
def measure(
    parts, scores, most, below, p, mass, risen, change, total, falls, seen, k0, low,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr,
):  # fmt: skip
    """Where a tile was looked at, added to where the tiles before it were; Σ p of both, mass and total, are dealt."""
    peak, energy, moment, reach, mean, scatter = parts
    fallen = falls[:, None, None]
    if PEAK:
        if seen is not None:
            most = tl.maximum(most, LOWEST)
        peak = raised(peak, dealt(scores, M, N, HANDS), most, risen, k0, M, N, HANDS)
    if ENTROPIC:
        if seen is not None:
            below = tl.maximum(below, -1e30)  # minus infinity times a weight of 0 would be NaN
        here = summed(p * below, M, N, HANDS)
        energy = fallen * (energy + total * change[:, None, None]) + here
    if MOMENTS > 0:
        at = column(tl.arange(0, N // HANDS), HANDS)[None, None, :].to(tl.float32)
        share = dealt(p, M, N, HANDS)
        here = tl.sum(share * at, 2, keep_dims=True)
    if MOMENTS == 1:
        moment = fallen * moment + (here + (k0 - low) * mass)
    if MOMENTS == 2:  # two parts of a mean and of a variance are joined without ever squaring a far position
        added = whole(mass)
        some = tl.where(added > 0, added, 1.0)
        middle = whole(here + behind(HANDS) * mass) / some
        away = at - (middle[:, None, None] - behind(HANDS))
        step = middle + (k0 - low) - mean
        weight = added / (falls * reach + some)
        joined = (1 / HANDS) * step * step * weight * falls * reach
        scatter = fallen * scatter + tl.sum(share * away * away, 2, keep_dims=True) + joined[:, None, None]
        mean += step * weight
        reach = falls * reach + added
    return peak, energy, moment, reach, mean, scatter


@triton.jit
@no_type_check
def join(parts, total, divisor, MOMENTS: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """The key of the highest score, Σ p (s - highest), and mean and variance of the position from `low` on, of a row."""
    peak, energy, moment, _, mean, scatter = parts
    if MOMENTS == 1:
        mean = whole(moment + behind(HANDS) * total) / divisor
    return first(peak, N, HANDS), whole(energy), mean, whole(scatter) / divisor


@triton.jit
@no_type_check
def whole(part):
    """What the hands of a row have together."""
    return tl.sum(tl.sum(part, 2), 1)
