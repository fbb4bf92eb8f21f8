"""Mask and dropout of a tile in the additive kernels, equal in every pass."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def load_mask(
    keep, bits, kinds, b, h, rows, columns, T, S, first, behind, ahead, bit_b, bit_h, bit_t, kind_b, kind_h, kind_t,
    KEEP: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Mask of a tile: keys within the sequence, the padding mask, the window from `behind` to `ahead`, and the bitmask.

    Of the `Bitmask` the bits are read for partial tiles alone.
    """
    at = rows + first
    inside = (rows < T)[:, None] & (columns < S)[None, :]
    mask = inside & (columns[None, :] <= (at + ahead)[:, None]) & (columns[None, :] >= (at - behind)[:, None])
    if KEEP:
        mask = mask & (tl.load(keep + b * S + columns, mask=columns < S, other=0) != 0)[None, :]
    if MASK:
        word = (columns // 32)[None, :]
        tiles = b * kind_b + h * kind_h + (rows // 32)[:, None] * kind_t + word
        kind = tl.load(kinds + tiles, mask=mask, other=0)
        words = b * bit_b + h * bit_h + rows.to(tl.int64)[:, None] * bit_t + word
        word_bits = tl.load(bits + words, mask=mask & (kind == 2), other=0)
        mask = mask & ((kind == 1) | ((word_bits >> (columns % 32)[None, :]) & 1 != 0))
    return mask


@triton.jit
@no_type_check
def any_visible(mask):
    """True if any position of a tile is visible."""
    return tl.max(tl.max(mask.to(tl.int32), axis=1), axis=0) > 0


@triton.jit
@no_type_check
def sample_dropout(seed, head, rows, columns, S, dropout, scale):
    """Dropout factors: 0 or the scale 1 / (1 - dropout), by Philox with head, query and key as counter."""
    place = rows[:, None] * S + columns[None, :]
    low, high = place.to(tl.uint32), tl.zeros_like(place).to(tl.uint32)
    random, _, _, _ = tl.philox(seed, low, high + head.to(tl.uint32), high, high)
    uniform = (random >> 8).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08  # 24 bits, exact in float32
    return tl.where(uniform >= dropout, scale, 0.0)
