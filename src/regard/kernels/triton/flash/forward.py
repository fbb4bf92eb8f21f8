"""Forward of FlashAttention: context, log-sum-exp and statistics of each query in one pass over the keys."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash import statistics
from regard.kernels.triton.flash.tile import (
    LN2,
    LOG2E,
    SCAN,
    compute_gaussian_factor,
    compute_tile_mask,
    compute_tile_scores,
    compute_window_distances,
    find_first_position,
    find_full_tiles_end,
    find_kept_bounds,
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
    state, parts, acc, q, key, value, bias, centre, keep, mask, seed,
    b, h, number, m, k0, low, first, window, width, scale, dropout, group, queries, keys, size, value_size,
    FREE: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, GAUSSIAN: tl.constexpr,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of keys; FREE ones need no mask, EVEN ones no bounds check.

    An online softmax: sums under an earlier maximum are rescaled when it grows.
    """
    LANES: tl.constexpr = 1 if PRECISION == "ieee" else 4
    n = k0 + tl.arange(0, N)
    valid, allowed, distance, gaussian_factor = None, None, None, compute_gaussian_factor(width)
    if not FREE:
        valid = None if EVEN else load_padding(keep, b, n, keys)
        if centre is not None:
            distance = compute_window_distances(k0, valid, centre, N)
        allowed = compute_tile_mask(b, h, m, n, first, valid, mask, distance, queries, window, width, CAUSAL, WINDOWED)
    key_head = h // group
    k = load_tile(key, b, key_head, k0, size, N, D) if FREE else load_rows(key, b, key_head, n, valid, size, D)
    if LATE and (FREE or (distance is not None and bias is None and GAUSSIAN < 2)):
        # the largest product has the largest score: only the maximum is scaled first
        scores, factor = tl.dot(q, tl.trans(k), input_precision=PRECISION).to(tl.float32), scale * LOG2E
        if allowed is not None:
            scores = tl.where(allowed, scores, float("-inf"))
    else:
        scores, factor = (
            compute_tile_scores(
                q, k, bias, b, h, m, n, allowed, distance, queries, scale, gaussian_factor, GAUSSIAN, PRECISION
            ),
            1.0,
        )
    row_max, total = state
    tile_max = tl.max(scores, 1)
    scaled_max = tile_max * factor
    new_max = tl.maximum(row_max, scaled_max)
    change = row_max - new_max
    rescale = tl.exp2(change)
    below = tl.fma(scores, factor, -new_max[:, None])
    p = tl.exp2(below)
    weights = p
    if GAUSSIAN == 1:
        weights = tl.exp2(below + gaussian_factor * distance * distance)
    if seed is not None:
        weights *= sample_dropout(seed, number, m, n, queries, keys, dropout)
    v = (
        load_tile(value, b, key_head, k0, value_size, N, V)
        if FREE
        else load_rows(value, b, key_head, n, valid, value_size, V)
    )
    acc = acc * rescale[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION).to(tl.float32)
    mass = statistics.sum_per_lane(p, M, N, LANES)  # overlaps with the tensor cores
    if PEAK or ENTROPIC or MOMENTS > 0:
        parts = statistics.update_sums(
            parts, scores, tile_max, below, p, mass, scaled_max > row_max, change, total, rescale, allowed, k0, low,
            PEAK, ENTROPIC, MOMENTS, M, N, LANES,
        )  # fmt: skip
    return (new_max, rescale[:, None, None] * total + mass), parts, acc


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def forward(
    query, key, value, context, lse, measured, argmax, best, best_keys,
    bias, centres, keep, mask, offsets, seed,
    offset, window, width, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, GAUSSIAN: tl.constexpr, EVEN: tl.constexpr,
    PEAK: tl.constexpr, ENTROPIC: tl.constexpr, MOMENTS: tl.constexpr, TOP: tl.constexpr, LATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of a tile of queries: first the full tiles of keys, if known beforehand, then the partial ones.

    EVEN is for predicted windows over keys without padding that fill whole tiles.

    Of the TOP largest weights this finds the first; topk.py finds the others one by one.
    """
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    m = find_query_indices(q0 + tl.arange(0, M), centres, b, queries)
    inside = m < queries
    first = find_first_position(offset, offsets, b)
    centre = None
    if centres is not None:
        centre = load_centres(q0 + tl.arange(0, M), centres, b, queries)
    q = load_rows(query, b, h, m, inside, size, D)

    LANES: tl.constexpr = 1 if PRECISION == "ieee" else 4
    state = tl.full([M], statistics.LOWEST, tl.float32), tl.zeros([M, LANES, 1], tl.float32)  # maximum; Σ p per lane
    parts = statistics.start_sums(M, N, LANES)
    acc = tl.zeros([M, V], tl.float32)
    low, high = find_key_bounds(q0, first, keys, window, centre, inside, width, M, N, CAUSAL, WINDOWED)
    if EVEN:
        low = find_whole_tiles(low, high, keys, N)
    whole = keys
    if keep is not None and centres is None:
        whole, end = find_kept_bounds(keep, b, keys, SCAN)
        high = tl.minimum(high, end)
    start = low
    if mask is None and bias is None and centres is None and not WINDOWED:
        start = find_full_tiles_end(q0, first, whole, N, CAUSAL)
        for k0 in range(low, start, N):
            state, parts, acc = process_tile(
                state, parts, acc, q, key, value, bias, centre, keep, mask, seed,
                b, h, number, m, k0, low, first, window, width, scale, dropout, group, queries, keys, size, value_size,
                True, False, CAUSAL, WINDOWED, GAUSSIAN, PEAK or TOP > 0, ENTROPIC, MOMENTS, LATE, M, N, D, V, PRECISION,
            )  # fmt: skip
    for k0 in range(start, high, N):
        state, parts, acc = process_tile(
            state, parts, acc, q, key, value, bias, centre, keep, mask, seed,
            b, h, number, m, k0, low, first, window, width, scale, dropout, group, queries, keys, size, value_size,
            False, EVEN, CAUSAL, WINDOWED, GAUSSIAN, PEAK or TOP > 0, ENTROPIC, MOMENTS, LATE, M, N, D, V, PRECISION,
        )  # fmt: skip

    row_max, lane_totals = state
    total = statistics.reduce_lanes(lane_totals)
    empty = total == 0
    divisor = tl.where(empty, 1.0, total)
    store_rows(context, b, h, m, inside, value_size, acc / divisor[:, None], V)
    row = number.to(tl.int64) * queries + m
    row_lse = tl.where(empty, float("inf"), row_max + tl.log2(divisor))  # infinity: every weight of such a query becomes 0
    tl.store(lse + row, row_lse, mask=inside)
    field = tl.num_programs(1).to(tl.int64) * queries
    peak, energy, mean, variance = statistics.finish_sums(parts, lane_totals, divisor, MOMENTS, N, LANES)
    if ENTROPIC:
        nats = tl.maximum((tl.log2(divisor) - energy / divisor) * LN2, 0.0)
        tl.store(measured + ENTROPY * field + row, nats, mask=inside)
    if PEAK:
        tl.store(measured + LARGEST * field + row, tl.where(empty, 0.0, tl.minimum(1 / divisor, 1.0)), mask=inside)
        tl.store(argmax + row, peak.to(tl.int64), mask=inside)
    if MOMENTS > 0:
        tl.store(measured + MEAN * field + row, tl.where(empty, 0.0, mean + low), mask=inside)
    if MOMENTS == 2:
        tl.store(measured + SPREAD * field + row, tl.sqrt(variance), mask=inside)
    if TOP > 0:
        tl.store(best + row * TOP, tl.minimum(tl.exp2(row_max - row_lse), 1.0), mask=inside)
        tl.store(best_keys + row * TOP, peak.to(tl.int64), mask=inside)
