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
def mask_taken_scores(scores, taken, k0, SLOTS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, HANDS: tl.constexpr):
    """Scores of a tile per thread, with a very low score for keys already taken."""
    at = find_lane_columns(tl.arange(0, N // HANDS), HANDS)[None, None, :] + 0.5
    rest = split_lanes(scores, M, N, HANDS)
    for each in tl.static_range(SLOTS):
        where = ((taken[each] - k0)[:, None, None] - find_lane_offsets(HANDS)).to(tl.float32) + 0.5
        rest += FAR * (at == where).to(tl.float32)
    return rest


@triton.jit
@no_type_check
def process_tile(
    state, asked, found, bias, keep, mask, taken, b, h, q, k0, start, window, scale, group, queries, keys, size,
    FREE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, SLOTS: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of keys; FREE ones need no mask."""
    HANDS: tl.constexpr = 1 if PRECISION == "ieee" else 4
    highest, peak = state
    k = k0 + tl.arange(0, N)
    there, seen = None, None
    if not FREE:
        there = load_padding(keep, b, k, keys)
        seen = compute_tile_mask(b, h, q, k, start, there, mask, None, queries, window, 0.0, CAUSAL, WINDOWED)
    key = load_rows(found, b, h // group, k, there, size, D)
    if LATE and FREE:  # the largest product has the largest score
        scores, factor = tl.dot(asked, tl.trans(key), input_precision=PRECISION).to(tl.float32), scale * LOG2E
    else:
        scores, factor = (
            compute_tile_scores(asked, key, bias, b, h, q, k, seen, None, queries, scale, 1.0, 0, PRECISION),
            1.0,
        )
    rest = mask_taken_scores(scores, taken, k0, SLOTS, M, N, HANDS)
    most = tl.max(tl.max(rest, 2), 1)
    tallest = most * factor
    peak = update_peak(peak, rest, tl.maximum(most, LOWEST), tallest > highest, k0, M, N, HANDS)
    return tl.maximum(highest, tallest), peak


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys", "count", "top"])
@no_type_check
def following(
    query, found, lse, best, best_keys,
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
    q = q0 + tl.arange(0, M)
    inside = q < queries
    start = find_first_position(offset, offsets, b)
    row = number.to(tl.int64) * queries + q
    asked = load_rows(query, b, h, q, inside, size, D)
    taken = ()
    for each in tl.static_range(SLOTS):
        one = tl.load(best_keys + row * top + each, mask=inside & (each < count), other=-1).to(tl.int32)
        taken = taken + (one,)  # noqa: RUF005 (Triton knows no unpacking)

    HANDS: tl.constexpr = 1 if PRECISION == "ieee" else 4
    state = tl.full([M], float("-inf"), tl.float32), start_peak(M, N, HANDS)
    low, high = find_key_bounds(q0, start, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)
    until = low
    if keep is None and mask is None and bias is None and not WINDOWED:
        until = find_full_tiles_end(q0, start, keys, N, CAUSAL)
        for k0 in range(low, until, N):
            state = process_tile(
                state, asked, found, bias, keep, mask, taken, b, h, q, k0, start, window, scale, group, queries, keys, size,
                True, CAUSAL, WINDOWED, SLOTS, LATE, M, N, D, PRECISION,
            )  # fmt: skip
    for k0 in range(until, high, N):
        state = process_tile(
            state, asked, found, bias, keep, mask, taken, b, h, q, k0, start, window, scale, group, queries, keys, size,
            False, CAUSAL, WINDOWED, SLOTS, LATE, M, N, D, PRECISION,
        )  # fmt: skip
    highest, peak = state
    ended = tl.load(lse + row, mask=inside, other=float("inf"))
    tl.store(best + row * top + count, tl.exp2(highest - ended), mask=inside)
    tl.store(best_keys + row * top + count, find_argmax_key(peak, N, HANDS).to(tl.int64), mask=inside)
