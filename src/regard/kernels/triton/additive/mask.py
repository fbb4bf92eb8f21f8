"""Which keys the queries of a tile may see, and which weights dropout takes away: the same in every pass."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def seen(
    keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead, bit_b, bit_h, bit_t, kind_b, kind_h, kind_t,
    KEEP: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """True where a key exists, is kept, stands within `behind` and `ahead` of the query, and is allowed by the mask.

    The mask is `Packed`: bits are read of those tiles alone of which some are hidden and some are not.
    """
    at = rows + first
    inside = (rows < T)[:, None] & (columns < S)[None, :]
    found = inside & (columns[None, :] <= (at + ahead)[:, None]) & (columns[None, :] >= (at - behind)[:, None])
    if KEEP:
        found = found & (tl.load(keep + b * S + columns, mask=columns < S, other=0) != 0)[None, :]
    if MASK:
        word = (columns // 32)[None, :]
        tiles = b * kind_b + h * kind_h + (rows // 32)[:, None] * kind_t + word
        kind = tl.load(kinds + tiles, mask=found, other=0)
        places = b * bit_b + h * bit_h + rows.to(tl.int64)[:, None] * bit_t + word
        some = tl.load(bits + places, mask=found & (kind == 2), other=0)
        found = found & ((kind == 1) | ((some >> (columns % 32)[None, :]) & 1 != 0))
    return found


@triton.jit
@no_type_check
def some(found):
    """Whether a tile has anything to see."""
    return tl.max(tl.max(found.to(tl.int32), axis=1), axis=0) > 0


@triton.jit
@no_type_check
def kept(seed, head, rows, columns, S, dropout, scale):
    """0 where a weight is dropped, else the scale 1 / (1 - dropout): Philox numbers counted by head, query and key."""
    place = rows[:, None] * S + columns[None, :]
    low, high = place.to(tl.uint32), tl.zeros_like(place).to(tl.uint32)
    drawn, _, _, _ = tl.philox(seed, low, high + head.to(tl.uint32), high, high)
    share = (drawn >> 8).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08  # 24 bits, exact in single precision
    return tl.where(share >= dropout, scale, 0.0)
