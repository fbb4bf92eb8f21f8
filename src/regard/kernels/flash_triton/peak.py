"""The key of a row's highest score, found after the last tile in the columns of the tile that has it.

A hand (apart.py) keeps the upper halves of two columns in one register: how far each score is below the highest, to eight
bits. To keep two is a single instruction, which rows whose highest score is elsewhere skip. No two scores are taken for
equal by that: rounding leaves half a last place of the highest at most, and the next lower score is as much further down.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.flash_triton.apart import behind, column, dealt

NEVER = tl.constexpr(2**31 - 1)
"""Behind every key."""


@triton.jit
@no_type_check
def unseen(M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """A peak of nothing yet, which is at 0: where its tile begins, and what is kept of it."""
    kept = tl.zeros([M, 1, N], tl.float32) if HANDS == 1 else tl.zeros([M, HANDS, N // (2 * HANDS)], tl.int32)
    return tl.zeros([M], tl.int32), kept


@triton.jit
@no_type_check
def raised(
    peak, below, risen, k0, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr, ASSEMBLY: tl.constexpr
):  # fmt: skip
    """The peak, which is in this tile where it has risen; `below` is how far its scores are below the highest."""
    start, kept = peak
    if HANDS == 1:
        kept = tl.where(risen[:, None, None], below[:, None, :], kept)
    else:
        grown, _ = beside(tl.broadcast_to(risen[:, None], [M, N]), M, N, HANDS)
        early, late = beside(below, M, N, HANDS)
        kept = tl.where(grown, joined(early, late, ASSEMBLY), kept)
    return tl.where(risen, k0, start), kept


@triton.jit
@no_type_check
def beside(data, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """The first and the second of every two columns beside each other that a hand has."""
    return tl.split(tl.reshape(dealt(data, M, N, HANDS), [M, HANDS, N // (2 * HANDS), 2]))


@triton.jit
@no_type_check
def joined(early, late, ASSEMBLY: tl.constexpr):
    """The upper halves of two numbers in one; in assembly it is one instruction."""
    if ASSEMBLY:
        both = tl.inline_asm_elementwise(
            "prmt.b32 $0, $1, $2, 0x7632;", "=r,r,r", [early, late], dtype=tl.int32, is_pure=True, pack=1
        )
    else:
        low, high = early.to(tl.int32, bitcast=True), late.to(tl.int32, bitcast=True)
        both = ((low >> 16) & 0xFFFF) | (high & -0x10000)
    return both


@triton.jit
@no_type_check
def first(peak, N: tl.constexpr, HANDS: tl.constexpr):
    """The key of a peak, of equal ones the first; 0 where the highest score is no number."""
    start, kept = peak
    if HANDS == 1:
        top = tl.max(kept, 2, keep_dims=True)
        place = tl.where(kept == top, tl.arange(0, N)[None, None, :], NEVER)
    else:
        early, late = (kept << 16).to(tl.float32, bitcast=True), (kept & -0x10000).to(tl.float32, bitcast=True)
        top = tl.max(tl.max(tl.maximum(early, late), 2, keep_dims=True), 1, keep_dims=True)
        at = column(2 * tl.arange(0, N // (2 * HANDS)), HANDS)[None, None, :] + behind(HANDS)
        place = tl.where(early == top, at, tl.where(late == top, at + 1, NEVER))
    place = tl.min(tl.min(tl.where(top > float("-inf"), place, NEVER), 2), 1)
    return tl.where(place == NEVER, 0, start + place)
