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
def begin(M: tl.constexpr):
    """The tile and the bits of the highest score, Σ p (s - highest) and Σ p (k - low), of nothing yet: the peak is at 0."""
    none = tl.zeros([M, 4, 1], tl.float32)
    return tl.zeros([M], tl.int32), none + 1, none, none


@triton.jit
@no_type_check
def measure(
    state, scores, most, below, p, mass, risen, highest, total, falls, base, seen, k0, low,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Where a tile was looked at, added to where the tiles before it were; what belongs to a row is dealt in quarters."""
    best, bits, energy, mean = state
    slot = tl.arange(0, N // 4)[None, None, :]
    if PEAK:  # the first column of a thread has the highest bit
        equal = dealt(scores, M, N) == most[:, None, None]
        here = tl.sum(equal.to(tl.float32) * tl.exp2(-slot.to(tl.float32)), 2, keep_dims=True)
        best = tl.where(risen, k0, best)
        bits = tl.where(risen[:, None, None], here, bits)
    if ENTROPIC:
        moved = 0.25 * total * tl.where(total > 0, highest - base, 0.0)
        if seen is not None:
            below = tl.maximum(below, -1e30)  # minus infinity times a weight of 0 would be NaN
        here = tl.sum(dealt(p * below, M, N), 2, keep_dims=True)
        energy = falls[:, None, None] * (energy + moved[:, None, None]) + here
    if MOMENTS == 1:
        column = (slot // 2 * 8 + slot % 2).to(tl.float32)
        behind = (2 * tl.arange(0, 4)).to(tl.float32)[None, :, None]
        share = dealt(p, M, N)
        here = tl.sum(share * column, 2, keep_dims=True) + behind * tl.sum(share, 2, keep_dims=True)
        mean = falls[:, None, None] * mean + here + (0.25 * (k0 - low) * mass)[:, None, None]
    return best, bits, energy, mean


@triton.jit
@no_type_check
def join(state):
    """The key of the highest score, Σ p (s - highest) and Σ p (k - low), of a row."""
    best, bits, energy, mean = state
    slot = 127 - (bits.to(tl.int32, bitcast=True) >> 23)  # of the highest bit, by the exponent of their sum
    column = slot // 2 * 8 + slot % 2 + 2 * tl.arange(0, 4)[None, :, None]
    first = tl.where(bits > 0, column, 2 * 64)
    return best + tl.min(tl.min(first, 2), 1), tl.sum(tl.sum(energy, 2), 1), tl.sum(tl.sum(mean, 2), 1)
