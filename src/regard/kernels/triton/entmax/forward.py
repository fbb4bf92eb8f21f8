"""Forward of sparsemax and entmax attention: the threshold in a few passes over the keys, then one for the context."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.entmax.probabilities import compute_entmax_weights, compute_masked_scores, load_rise
from regard.kernels.triton.flash.tile import find_first_position, find_key_bounds, load_rows, sample_dropout, store_rows


@triton.jit
@no_type_check
def step_threshold(tau, low, high, mass, slope, rise):
    """Newton or bisection step of the threshold, within the bracket [low, high].

    With u_k the excess of score k over τ, and p = 1/(α-1), the root of Σ u^p = 1 is sought. Up to α = 2 the norm
    (Σ u^p)^(1/p) is convex and decreases in τ, so Newton's step on it approaches the root from below: from τ to
    τ + (Σ u^p - (Σ u^p)^(1-1/p)) / Σ u^(p-1), and close to the root the step on Σ u^p itself, which rounds better.
    Beyond 2 it is bisection.
    """
    low = tl.where(mass >= 1, tau, low)
    high = tl.where(mass >= 1, high, tau)
    some = tl.maximum(mass, 1e-30)
    rest = tl.where(mass > 1.5, mass - tl.exp2((1 - rise) * tl.log2(some)), rise * (mass - 1))
    step = tl.maximum(rest, 0.0) / tl.where(slope > 0, slope, 1.0)
    halfway = tl.where(high - low > 1e-7 * tl.abs(low), 0.5 * (low + high), low)
    return tl.where(rise <= 1, tau + step, halfway), low, high


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def forward(
    query, found, values, context, edges,
    alphas, keep, mask, offsets, seed,
    alpha, passes, offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, BEND: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of a tile of queries: maximum score, threshold and context; every pass recomputes the scores."""
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    q = q0 + tl.arange(0, M)
    inside = q < queries
    first = find_first_position(offset, offsets, b)
    rise = load_rise(alphas, alpha, h)
    asked = load_rows(query, b, h, q, inside, size, D)
    begin, end = find_key_bounds(q0, first, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)

    best = tl.full([M], float("-inf"), tl.float32)
    spoilt = tl.zeros([M], tl.int32)  # NaN is lost in a maximum and below every threshold
    for k0 in range(begin, end, N):
        scores, _, _ = compute_masked_scores(
            asked, found, keep, mask, b, h, group, q, k0 + tl.arange(0, N), first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        best = tl.maximum(best, tl.max(scores, 1))
        spoilt = tl.maximum(spoilt, tl.max((scores != scores).to(tl.int32), 1))
    spoilt = tl.where(best == float("inf"), 1, spoilt)
    searched = inside & (best > float("-inf")) & (spoilt == 0)
    best = tl.where(searched, best, 0.0)

    tau = tl.full([M], -1.0, tl.float32)  # here the best key alone has weight one, so the sum is at least one
    low = tl.full([M], -1.0, tl.float32)
    high = tl.zeros([M], tl.float32)
    left = tl.max(searched.to(tl.int32), 0)
    turn = 0
    while (left > 0) & (turn < passes):
        mass = tl.zeros([M], tl.float32)
        slope = tl.zeros([M], tl.float32)
        for k0 in range(begin, end, N):
            scores, _, _ = compute_masked_scores(
                asked, found, keep, mask, b, h, group, q, k0 + tl.arange(0, N), first, queries, keys, window, size, scale,
                CAUSAL, WINDOWED, D, PRECISION,
            )  # fmt: skip
            _, weights, lean = compute_entmax_weights(scores, best, tau, rise, BEND)
            mass += tl.sum(weights, 1)
            slope += tl.sum(lean, 1)
        moved, low, high = step_threshold(tau, low, high, mass, slope, rise)
        searched = searched & (moved != tau)
        tau = tl.where(searched, moved, tau)
        left = tl.max(searched.to(tl.int32), 0)
        turn += 1
    tau = tl.where(rise <= 1, tau, low)

    read = tl.zeros([M, V], tl.float32)
    for k0 in range(begin, end, N):
        k = k0 + tl.arange(0, N)
        scores, _, there = compute_masked_scores(
            asked, found, keep, mask, b, h, group, q, k, first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        _, weights, lean = compute_entmax_weights(scores, best, tau, rise, BEND)
        if tl.max(tl.max(lean, 1), 0) > 0:  # no values are read for zero weights
            if seed is not None:
                weights *= sample_dropout(seed, number, q, k, queries, keys, dropout)
            value = load_rows(values, b, h // group, k, there, value_size, V)
            read += tl.dot(weights.to(value.dtype), value, input_precision=PRECISION).to(tl.float32)
    read = tl.where((spoilt > 0)[:, None], float("nan"), read)
    store_rows(context, b, h, q, inside, value_size, read, V)
    row = number.to(tl.int64) * queries + q
    tl.store(edges + row, best, mask=inside)
    tl.store(edges + tl.num_programs(1).to(tl.int64) * queries + row, tau, mask=inside)
