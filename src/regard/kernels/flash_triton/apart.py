"""Where each query looked, in sums that stay apart for the four threads of a row until the last tile of keys.

Tensor cores leave a row of a tile to four threads, each with two columns in every eight. Sums over the columns of one
thread need no exchange, and what belongs to a column is a constant of the program, not a register: compiled for sm_90, heads
of 64 and tiles of 64 x 64, entropy, peak and mean position take 139 registers in place of 186, or 128 and spill nothing.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def dealt(data, M: tl.constexpr, N: tl.constexpr):
    """A tile by the thread that has a column: (M, 4, N / 4). Nothing is moved."""
    pairs = tl.reshape(data, [M, N // 8, 4, 2])
    return tl.reshape(tl.permute(pairs, [0, 2, 1, 3]), [M, 4, N // 4])


@triton.jit
@no_type_check
def column(slot):
    """Where the columns of the first thread stand in a tile; those of each next thread stand two further."""
    return slot // 2 * 8 + slot % 2


@triton.jit
@no_type_check
def behind():
    """How far the columns of each thread stand behind those of the first."""
    return 2 * tl.arange(0, 4)[None, :, None]


@triton.jit
@no_type_check
def unseen(M: tl.constexpr):
    """A peak of nothing yet, which is at 0: the tile of the highest score, and a bit for each column that has it."""
    return tl.zeros([M], tl.int32), tl.full([M, 4, 1], 1.0, tl.float32)


@triton.jit
@no_type_check
def raised(peak, scores, most, risen, k0, N: tl.constexpr):
    """The peak, which is in this tile where it has risen; scores are dealt. A thread's first column has the highest bit."""
    slot = tl.arange(0, N // 4)[None, None, :]
    equal = scores == most[:, None, None]
    bits = tl.sum(tl.where(equal, 1.0, 0.0) * tl.exp2(-slot.to(tl.float32)), 2, keep_dims=True)
    return tl.where(risen, k0, peak[0]), tl.where(risen[:, None, None], bits, peak[1])


@triton.jit
@no_type_check
def first(peak):
    """The key of a peak, of equal ones the first."""
    best, bits = peak
    slot = 127 - (bits.to(tl.int32, bitcast=True) >> 23)  # of the highest bit, by the exponent of their sum
    place = tl.where(bits > 0, column(slot) + behind(), 2 * 64)
    return best + tl.min(tl.min(place, 2), 1)


@triton.jit
@no_type_check
def begin(M: tl.constexpr):
    """The peak, Σ p (s - highest), Σ p (k - low), and mean and Σ p (k - mean)² of the position from `low` on: of nothing."""
    none = tl.zeros([M, 4, 1], tl.float32)
    return unseen(M), none, none, tl.zeros([M], tl.float32), none


@triton.jit
@no_type_check
def measure(
    parts, scores, most, below, p, mass, risen, highest, total, falls, base, seen, k0, low,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Where a tile was looked at, added to where the tiles before it were; what belongs to a row is dealt in quarters."""
    peak, energy, moment, mean, scatter = parts
    fallen = falls[:, None, None]
    if PEAK:
        peak = raised(peak, dealt(scores, M, N), most, risen, k0, N)
    if ENTROPIC:
        moved = 0.25 * total * tl.where(total > 0, highest - base, 0.0)
        if seen is not None:
            below = tl.maximum(below, -1e30)  # minus infinity times a weight of 0 would be NaN
        here = tl.sum(dealt(p * below, M, N), 2, keep_dims=True)
        energy = fallen * (energy + moved[:, None, None]) + here
    if MOMENTS > 0:
        at = column(tl.arange(0, N // 4))[None, None, :].to(tl.float32)
        share = dealt(p, M, N)
        here = tl.sum(share * at, 2, keep_dims=True) + behind() * tl.sum(share, 2, keep_dims=True)
    if MOMENTS == 1:
        moment = fallen * moment + here + (0.25 * (k0 - low) * mass)[:, None, None]
    if MOMENTS == 2:  # two parts of a mean and of a variance are joined without ever squaring a far position
        some = tl.where(mass > 0, mass, 1.0)
        middle = whole(here) / some
        away = at - (middle[:, None, None] - behind())
        step = middle + (k0 - low) - mean
        weight = mass / (falls * total + some)
        joined = 0.25 * step * step * weight * falls * total
        scatter = fallen * scatter + tl.sum(share * away * away, 2, keep_dims=True) + joined[:, None, None]
        mean += step * weight
    return peak, energy, moment, mean, scatter


@triton.jit
@no_type_check
def join(parts, divisor, MOMENTS: tl.constexpr):
    """The key of the highest score, Σ p (s - highest), and mean and variance of the position from `low` on, of a row."""
    peak, energy, moment, mean, scatter = parts
    if MOMENTS == 1:
        mean = whole(moment) / divisor
    return first(peak), whole(energy), mean, whole(scatter) / divisor


@triton.jit
@no_type_check
def whole(part):
    """What the four threads of a row have together."""
    return tl.sum(tl.sum(part, 2), 1)
