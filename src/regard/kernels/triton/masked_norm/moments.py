"""Masked mean and variance in one pass, per group of channels and map, or per channel over a batch.

A program has a few positions with all of their channels, and writes the mean of each channel and the sum of squares around
it. These are merged without cancellation: Chan, Golub and LeVeque 1983,
https://doi.org/10.1080/00031305.1983.10483115

    n = Σ_i n_i,    m = Σ_i n_i m_i / n,    q = Σ_i q_i + n_i (m_i - m)²
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def gather(
    image, keep, counts, means, squares, channels, positions, row_step, channel_step, position_step,
    TILE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Kernel of TILE positions of one map: the number of kept ones, and mean and centred squares of each channel."""
    row, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    position, channel = tile * TILE + tl.arange(0, TILE), tl.arange(0, WIDE)
    keep_mask = tl.load(keep + row * positions + position, mask=position < positions, other=0) != 0
    inside = keep_mask[:, None] & (channel < channels)[None]
    at = row * row_step + position[:, None] * position_step + channel[None] * channel_step
    x = tl.load(image + at, mask=inside, other=0.0).to(tl.float32)
    count = tl.sum(keep_mask.to(tl.float32), axis=0)
    mean = tl.sum(x, axis=0) / tl.maximum(count, 1.0)
    centred = tl.where(inside, x - mean[None], 0.0)
    slot = row * tl.num_programs(1) + tile
    tl.store(counts + slot, count)
    tl.store(means + slot * channels + channel, mean, mask=channel < channels)
    tl.store(squares + slot * channels + channel, tl.sum(centred * centred, axis=0), mask=channel < channels)


@triton.jit
@no_type_check
def merge(
    counts, means, squares, mean, variance, totals, tiles, channels, group_size,
    TILES: tl.constexpr, WIDE: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """Kernel of one group of `group_size` channels of one map, or with ALONE of single channels: mean and variance."""
    row, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    inner = tl.arange(0, WIDE)
    channel = group * group_size + inner
    known = (inner < group_size) & (channel < channels)
    total, sums = 0.0, tl.zeros((WIDE,), tl.float32)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)
        count = tl.load(counts + row * tiles + tile, mask=tile < tiles, other=0.0)
        inside = (tile < tiles)[:, None] & known[None]
        at = (row * tiles + tile)[:, None] * channels + channel[None]
        sums += tl.sum(count[:, None] * tl.load(means + at, mask=inside, other=0.0), axis=0)
        total += tl.sum(count, axis=0)
    if ALONE:
        middle = sums / tl.maximum(total, 1.0)
    else:
        middle = tl.zeros((WIDE,), tl.float32) + tl.sum(sums, axis=0) / (tl.maximum(total, 1.0) * group_size)
    spread = tl.zeros((WIDE,), tl.float32)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)
        count = tl.load(counts + row * tiles + tile, mask=tile < tiles, other=0.0)
        inside = (tile < tiles)[:, None] & known[None]
        at = (row * tiles + tile)[:, None] * channels + channel[None]
        off = tl.load(means + at, mask=inside, other=0.0) - middle[None]
        centred = tl.load(squares + at, mask=inside, other=0.0) + count[:, None] * off * off
        spread += tl.sum(tl.where(inside, centred, 0.0), axis=0)
    if not ALONE:
        spread = tl.zeros((WIDE,), tl.float32) + tl.sum(spread, axis=0) / group_size
    tl.store(mean + row * channels + channel, middle, mask=known)
    tl.store(variance + row * channels + channel, spread / tl.maximum(total, 1.0), mask=known)
    if group == 0:
        tl.store(totals + row, total)
