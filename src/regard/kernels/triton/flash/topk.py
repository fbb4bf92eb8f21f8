"""Top-k weights of a query, one per pass: each finds the maximum over the keys not yet taken.

A pass has only products and their maximum. Several maxima at once would take a shuffle between threads for each of them
and each tile, and several times as long.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash.statistics import (
    LOWEST,
    find_argmax_key,
    find_lane_columns,
    find_lane_offsets,
    split_lanes,
    start_peak,
    update_peak,
)
from regard.kernels.triton.flash.tile import (
    LOG2E,
    compute_tile_mask,
    compute_tile_scores,
    find_first_position,
    find_full_tiles_end,
    find_key_bounds,
    load_padding,
    load_rows,
)

FAR = tl.constexpr(-1e30)
"""Lower bound of every score with a non-zero weight."""


@triton.jit
@no_type_check
def mask_taken_scores(scores, taken, k0, SLOTS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, LANES: tl.constexpr):
    """Scores of a tile per thread, with a very low score for keys already taken."""
    at = find_lane_columns(tl.arange(0, N // LANES), LANES)[None, None, :] + 0.5
    rest = split_lanes(scores, M, N, LANES)
    for slot in tl.static_range(SLOTS):
        where = ((taken[slot] - k0)[:, None, None] - find_lane_offsets(LANES)).to(tl.float32) + 0.5
        rest += FAR * (at == where).to(tl.float32)
    return rest


@triton.jit
@no_type_check
def process_tile(
    state, q, key, bias, keep, mask, taken, b, h, m, k0, start, window, scale, group, queries, keys, size,
    FREE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, SLOTS: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of keys; FREE ones need no mask."""
    LANES: tl.constexpr = 1 if PRECISION == "ieee" else 4
    row_max, peak = state
    n = k0 + tl.arange(0, N)
    valid, allowed = None, None
    if not FREE:
        valid = load_padding(keep, b, n, keys)
        allowed = compute_tile_mask(b, h, m, n, start, valid, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    k = load_rows(key, b, h // group, n, valid, size, D)
    if LATE and FREE:  # the largest product has the largest score
        scores, factor = tl.dot(q, tl.trans(k), input_precision=PRECISION).to(tl.float32), scale * LOG2E
    else:
        scores, factor = (
            compute_tile_scores(q, k, bias, b, h, m, n, allowed, None, queries, scale, 1.0, 0, PRECISION),
            1.0,
        )
    rest = mask_taken_scores(scores, taken, k0, SLOTS, M, N, LANES)
    tile_max = tl.max(tl.max(rest, 2), 1)
    scaled_max = tile_max * factor
    peak = update_peak(peak, rest, tl.maximum(tile_max, LOWEST), scaled_max > row_max, k0, M, N, LANES)
    return tl.maximum(row_max, scaled_max), peak


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys", "count", "top"])
@no_type_check
def find_next_top(
    query, key, lse, best, best_keys,
    bias, keep, mask, offsets,
    offset, window, scale, heads, group, queries, keys, size, count, top,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, SLOTS: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of the largest weight after the first `count` of `top`, and its key (the first of equals); 0 if none is left.

    The keys taken have a fixed number of SLOTS, so that a few specialisations serve all counts.
    """
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    m = q0 + tl.arange(0, M)
    inside = m < queries
    start = find_first_position(offset, offsets, b)
    row = number.to(tl.int64) * queries + m
    q = load_rows(query, b, h, m, inside, size, D)
    taken = ()
    for slot in tl.static_range(SLOTS):
        index = tl.load(best_keys + row * top + slot, mask=inside & (slot < count), other=-1).to(tl.int32)
        taken = taken + (index,)  # noqa: RUF005 (Triton knows no unpacking)

    LANES: tl.constexpr = 1 if PRECISION == "ieee" else 4
    state = tl.full([M], float("-inf"), tl.float32), start_peak(M, N, LANES)
    low, high = find_key_bounds(q0, start, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)
    until = low
    if keep is None and mask is None and bias is None and not WINDOWED:
        until = find_full_tiles_end(q0, start, keys, N, CAUSAL)
        for k0 in range(low, until, N):
            state = process_tile(
                state, q, key, bias, keep, mask, taken, b, h, m, k0, start, window, scale, group, queries, keys, size,
                True, CAUSAL, WINDOWED, SLOTS, LATE, M, N, D, PRECISION,
            )  # fmt: skip
    for k0 in range(until, high, N):
        state = process_tile(
            state, q, key, bias, keep, mask, taken, b, h, m, k0, start, window, scale, group, queries, keys, size,
            False, CAUSAL, WINDOWED, SLOTS, LATE, M, N, D, PRECISION,
        )  # fmt: skip
    row_max, peak = state
    row_lse = tl.load(lse + row, mask=inside, other=float("inf"))
    tl.store(best + row * top + count, tl.exp2(row_max - row_lse), mask=inside)
    tl.store(best_keys + row * top + count, find_argmax_key(peak, N, LANES).to(tl.int64), mask=inside)
