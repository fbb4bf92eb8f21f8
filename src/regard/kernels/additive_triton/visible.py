"""Which keys the queries of a tile may see, and which weights dropout takes away: the same in every pass."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def seen(
    keep, mask, b, h, rows, columns, T, S, first, behind, ahead, mask_b, mask_h, mask_t, mask_s,
    KEEP: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """True where a key exists, is kept, stands within `behind` and `ahead` of the query, and is allowed by the mask."""
    at = rows + first
    inside = (rows < T)[:, None] & (columns < S)[None, :]
    found = inside & (columns[None, :] <= (at + ahead)[:, None]) & (columns[None, :] >= (at - behind)[:, None])
    if KEEP:
        found = found & (tl.load(keep + b * S + columns, mask=columns < S, other=0) != 0)[None, :]
    if MASK:
        places = b * mask_b + h * mask_h + rows.to(tl.int64)[:, None] * mask_t + columns[None, :] * mask_s
        found = found & (tl.load(mask + places, mask=inside, other=0) != 0)
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
