"""Forward of FlashAttention: context, log-sum-exp and statistics of each query in one pass over the keys."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash import statistics
from regard.kernels.triton.flash.tile import (
    LN2,
    LOG2E,
    compute_gaussian_factor,
    compute_tile_mask,
    compute_tile_scores,
    compute_window_distances,
    find_first_position,
    find_full_tiles_end,
    find_key_bounds,
    find_query_indices,
    find_whole_tiles,
    load_centres,
    load_padding,
    load_rows,
    load_tile,
    sample_dropout,
    store_rows,
)

ENTROPY, LARGEST, MEAN, SPREAD = (tl.constexpr(number) for number in range(4))
"""Index of each statistic in the output of `forward`."""


@triton.jit
@no_type_check
def process_tile(
    state, parts, read, asked, found, values, bias, centre, keep, mask, seed,
    b, h, number, q, k0, low, first, window, width, scale, dropout, group, queries, keys, size, value_size,
    FREE: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BELL: tl.constexpr,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of keys; FREE ones need no mask, EVEN ones no bounds check.

    An online softmax: sums under an earlier maximum are rescaled when it grows.
    """
    HANDS: tl.constexpr = 1 if PRECISION == "ieee" else 4
    k = k0 + tl.arange(0, N)
    there, seen, away, fall = None, None, None, compute_gaussian_factor(width)
    if not FREE:
        there = None if EVEN else load_padding(keep, b, k, keys)
        if centre is not None:
            away = compute_window_distances(k0, there, centre, N)
        seen = compute_tile_mask(b, h, q, k, first, there, mask, away, queries, window, width, CAUSAL, WINDOWED)
    owner = h // group
    key = load_tile(found, b, owner, k0, size, N, D) if FREE else load_rows(found, b, owner, k, there, size, D)
    if LATE and (FREE or (away is not None and bias is None and BELL < 2)):
        # the largest product has the largest score: only the maximum is scaled first
        scores, factor = tl.dot(asked, tl.trans(key), input_precision=PRECISION).to(tl.float32), scale * LOG2E
        if seen is not None:
            scores = tl.where(seen, scores, float("-inf"))
    else:
        scores, factor = (
            compute_tile_scores(asked, key, bias, b, h, q, k, seen, away, queries, scale, fall, BELL, PRECISION),
            1.0,
        )
    highest, total = state
    most = tl.max(scores, 1)
    tallest = most * factor
    above = tl.maximum(highest, tallest)
    change = highest - above
    falls = tl.exp2(change)
    below = tl.fma(scores, factor, -above[:, None])
    p = tl.exp2(below)
    used = p
    if BELL == 1:
        used = tl.exp2(below + fall * away * away)
    if seed is not None:
        used *= sample_dropout(seed, number, q, k, queries, keys, dropout)
    value = (
        load_tile(values, b, owner, k0, value_size, N, V) if FREE else load_rows(values, b, owner, k, there, value_size, V)
    )
    read = read * falls[:, None] + tl.dot(used.to(value.dtype), value, input_precision=PRECISION).to(tl.float32)
    mass = statistics.sum_per_lane(p, M, N, HANDS)  # overlaps with the tensor cores
    if PEAK or ENTROPIC or MOMENTS > 0:
        parts = statistics.update_sums(
            parts, scores, most, below, p, mass, tallest > highest, change, total, falls, seen, k0, low,
            PEAK, ENTROPIC, MOMENTS, M, N, HANDS,
        )  # fmt: skip
    return (above, falls[:, None, None] * total + mass), parts, read


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def forward(
    query, found, values, context, lse, measured, argmax, best, best_keys,
    bias, centres, keep, mask, offsets, seed,
    offset, window, width, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BELL: tl.constexpr, EVEN: tl.constexpr,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr, TOP: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of a tile of queries: first the full tiles of keys, if known beforehand, then the partial ones.

    EVEN is for predicted windows over keys without padding that fill whole tiles.

    Of the TOP largest weights this finds the first; topk.py finds the others one by one.
    """
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    q = find_query_indices(q0 + tl.arange(0, M), centres, b, queries)
    inside = q < queries
    first = find_first_position(offset, offsets, b)
    centre = None
    if centres is not None:
        centre = load_centres(q0 + tl.arange(0, M), centres, b, queries)
    asked = load_rows(query, b, h, q, inside, size, D)

    HANDS: tl.constexpr = 1 if PRECISION == "ieee" else 4
    state = tl.full([M], statistics.LOWEST, tl.float32), tl.zeros([M, HANDS, 1], tl.float32)  # maximum; Σ p per lane
    parts = statistics.start_sums(M, N, HANDS)
    read = tl.zeros([M, V], tl.float32)
    low, high = find_key_bounds(q0, first, keys, window, centre, inside, width, M, N, CAUSAL, WINDOWED)
    if EVEN:
        low = find_whole_tiles(low, high, keys, N)
    start = low
    if keep is None and mask is None and bias is None and centres is None and not WINDOWED:
        start = find_full_tiles_end(q0, first, keys, N, CAUSAL)
        for k0 in range(low, start, N):
            state, parts, read = process_tile(
                state, parts, read, asked, found, values, bias, centre, keep, mask, seed,
                b, h, number, q, k0, low, first, window, width, scale, dropout, group, queries, keys, size, value_size,
                True, False, CAUSAL, WINDOWED, BELL, PEAK or TOP > 0, ENTROPIC, MOMENTS, LATE, M, N, D, V, PRECISION,
            )  # fmt: skip
    for k0 in range(start, high, N):
        state, parts, read = process_tile(
            state, parts, read, asked, found, values, bias, centre, keep, mask, seed,
            b, h, number, q, k0, low, first, window, width, scale, dropout, group, queries, keys, size, value_size,
            False, EVEN, CAUSAL, WINDOWED, BELL, PEAK or TOP > 0, ENTROPIC, MOMENTS, LATE, M, N, D, V, PRECISION,
        )  # fmt: skip

    highest, shares = state
    total = statistics.reduce_lanes(shares)
    blind = total == 0
    divisor = tl.where(blind, 1.0, total)
    store_rows(context, b, h, q, inside, value_size, read / divisor[:, None], V)
    row = number.to(tl.int64) * queries + q
    ended = tl.where(blind, float("inf"), highest + tl.log2(divisor))  # infinity: every weight of such a query becomes 0
    tl.store(lse + row, ended, mask=inside)
    field = tl.num_programs(1).to(tl.int64) * queries
    peak, energy, mean, variance = statistics.finish_sums(parts, shares, divisor, MOMENTS, N, HANDS)
    if ENTROPIC:
        nats = tl.maximum((tl.log2(divisor) - energy / divisor) * LN2, 0.0)
        tl.store(measured + ENTROPY * field + row, nats, mask=inside)
    if PEAK:
        tl.store(measured + LARGEST * field + row, tl.where(blind, 0.0, tl.minimum(1 / divisor, 1.0)), mask=inside)
        tl.store(argmax + row, peak.to(tl.int64), mask=inside)
    if MOMENTS > 0:
        tl.store(measured + MEAN * field + row, tl.where(blind, 0.0, mean + low), mask=inside)
    if MOMENTS == 2:
        tl.store(measured + SPREAD * field + row, tl.sqrt(variance), mask=inside)
    if TOP > 0:
        tl.store(best + row * TOP, tl.minimum(tl.exp2(highest - ended), 1.0), mask=inside)
        tl.store(best_keys + row * TOP, peak.to(tl.int64), mask=inside)
