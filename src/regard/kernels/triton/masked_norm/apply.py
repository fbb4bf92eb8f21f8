"""Elementwise kernels of the masked norm with residual and ReLU, forward and backward.

    y = max(0, w (x - m) s + b + residual) at kept positions and 0 elsewhere; without RECTIFY, w (x - m) s + b
    x̂ = (x - m) s,    dy/dx = s (w g - (Σ w g + x̂ Σ w g x̂) / n),    sums over the n kept elements that share statistics

g is the gradient of y where y is above 0, and s is 1 / √(variance + ε). `of_row` is the stride of the statistics between
maps: 0 where all maps share them. Sums are in float32 in any precision.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def forward(
    image, keep, mean, variance, weight, bias, residual, out, channels, positions, of_row, epsilon,
    row_step, channel_step, position_step,
    TILE: tl.constexpr, WIDE: tl.constexpr, RECTIFY: tl.constexpr, RESIDUAL: tl.constexpr,
):  # fmt: skip
    """Forward kernel of TILE positions of one map."""
    row, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    position, channel = tile * TILE + tl.arange(0, TILE), tl.arange(0, WIDE)
    keep_mask = tl.load(keep + row * positions + position, mask=position < positions, other=0) != 0
    known = channel < channels
    inside, in_map = keep_mask[:, None] & known[None], (position < positions)[:, None] & known[None]
    group = row * of_row + channel
    m, v = tl.load(mean + group, mask=known, other=0.0), tl.load(variance + group, mask=known, other=0.0)
    s = 1.0 / tl.sqrt(v + epsilon)
    w, b = tl.load(weight + channel, mask=known, other=0.0), tl.load(bias + channel, mask=known, other=0.0)
    at = row * row_step + position[:, None] * position_step + channel[None] * channel_step
    x = tl.load(image + at, mask=inside, other=0.0).to(tl.float32)
    y = (x - m[None]) * (s * w)[None] + b[None]
    if RESIDUAL:
        y += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    if RECTIFY:
        y = tl.maximum(y, 0.0)
    tl.store(out + at, tl.where(inside, y, 0.0).to(out.dtype.element_ty), mask=in_map)


@triton.jit
@no_type_check
def sums(
    image, keep, mean, variance, out, grad, d_residual, sum_g, sum_gx, channels, positions, of_row, epsilon,
    row_step, channel_step, position_step,
    TILE: tl.constexpr, WIDE: tl.constexpr, RECTIFY: tl.constexpr, RESIDUAL: tl.constexpr,
):  # fmt: skip
    """Kernel of TILE positions of one map: partial Σ g and Σ g x̂ of each channel, and the residual's gradient."""
    row, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    position, channel = tile * TILE + tl.arange(0, TILE), tl.arange(0, WIDE)
    keep_mask = tl.load(keep + row * positions + position, mask=position < positions, other=0) != 0
    known = channel < channels
    inside, in_map = keep_mask[:, None] & known[None], (position < positions)[:, None] & known[None]
    group = row * of_row + channel
    m, v = tl.load(mean + group, mask=known, other=0.0), tl.load(variance + group, mask=known, other=0.0)
    s = 1.0 / tl.sqrt(v + epsilon)
    at = row * row_step + position[:, None] * position_step + channel[None] * channel_step
    x = tl.load(image + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    if RECTIFY:
        g = tl.where(tl.load(out + at, mask=inside, other=0.0).to(tl.float32) > 0, g, 0.0)
    if RESIDUAL:
        tl.store(d_residual + at, g.to(d_residual.dtype.element_ty), mask=in_map)
    slot = (row * tl.num_programs(1) + tile) * channels + channel
    tl.store(sum_g + slot, tl.sum(g, axis=0), mask=known)
    tl.store(sum_gx + slot, tl.sum(g * (x - m[None]) * s[None], axis=0), mask=known)


@triton.jit
@no_type_check
def merge(
    totals, sum_g, sum_gx, weight, first, second, tiles, channels, group_size,
    TILES: tl.constexpr, WIDE: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """Kernel of `group_size` channels of one map, or with ALONE of single channels: Σ w g / n and Σ w g x̂ / n."""
    row, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    inner = tl.arange(0, WIDE)
    channel = group * group_size + inner
    known = (inner < group_size) & (channel < channels)
    w = tl.load(weight + channel, mask=known, other=0.0)
    one, other = tl.zeros((WIDE,), tl.float32), tl.zeros((WIDE,), tl.float32)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)
        inside = (tile < tiles)[:, None] & known[None]
        at = (row * tiles + tile)[:, None] * channels + channel[None]
        one += tl.sum(tl.load(sum_g + at, mask=inside, other=0.0), axis=0)
        other += tl.sum(tl.load(sum_gx + at, mask=inside, other=0.0), axis=0)
    one, other = w * one, w * other
    if not ALONE:
        one = tl.zeros((WIDE,), tl.float32) + tl.sum(one, axis=0) / group_size
        other = tl.zeros((WIDE,), tl.float32) + tl.sum(other, axis=0) / group_size
    count = tl.maximum(tl.load(totals + row), 1.0)
    tl.store(first + row * channels + channel, one / count, mask=known)
    tl.store(second + row * channels + channel, other / count, mask=known)


@triton.jit
@no_type_check
def backward(
    image, keep, mean, variance, weight, out, grad, first, second, d_image, channels, positions, of_row, epsilon,
    row_step, channel_step, position_step,
    TILE: tl.constexpr, WIDE: tl.constexpr, RECTIFY: tl.constexpr,
):  # fmt: skip
    """Kernel of TILE positions of one map: the gradient of the norm's input."""
    row, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    position, channel = tile * TILE + tl.arange(0, TILE), tl.arange(0, WIDE)
    keep_mask = tl.load(keep + row * positions + position, mask=position < positions, other=0) != 0
    known = channel < channels
    inside, in_map = keep_mask[:, None] & known[None], (position < positions)[:, None] & known[None]
    group = row * of_row + channel
    m, v = tl.load(mean + group, mask=known, other=0.0), tl.load(variance + group, mask=known, other=0.0)
    s = 1.0 / tl.sqrt(v + epsilon)
    one, other = tl.load(first + group, mask=known, other=0.0), tl.load(second + group, mask=known, other=0.0)
    w = tl.load(weight + channel, mask=known, other=0.0)
    at = row * row_step + position[:, None] * position_step + channel[None] * channel_step
    x = tl.load(image + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    if RECTIFY:
        g = tl.where(tl.load(out + at, mask=inside, other=0.0).to(tl.float32) > 0, g, 0.0)
    d = s[None] * (w[None] * g - one[None] - (x - m[None]) * s[None] * other[None])
    tl.store(d_image + at, tl.where(inside, d, 0.0).to(d_image.dtype.element_ty), mask=in_map)
