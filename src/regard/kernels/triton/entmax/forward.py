"""Forward of sparsemax and entmax attention: the threshold in a few passes over the keys, then one for the context."""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.entmax.probabilities import compute_entmax_weights, compute_masked_scores, load_alpha_minus_one
from regard.kernels.triton.flash.tile import (
    SCAN,
    find_first_position,
    find_kept_bounds,
    find_key_bounds,
    load_rows,
    sample_dropout,
    store_rows,
)


@triton.jit
@no_type_check
def step_threshold(tau, low, high, mass, slope, alpha_minus_one, POWER: tl.constexpr):
    """Newton or bisection step of the threshold, within the bracket [low, high].

    With u_k the excess of score k over τ, and p = 1/(α-1), the root of Σ u^p = 1 is sought. Up to α = 2 the norm
    (Σ u^p)^(1/p) is convex and decreases in τ, so Newton's step on it approaches the root from below: from τ to
    τ + (Σ u^p - (Σ u^p)^(1-1/p)) / Σ u^(p-1), and close to the root the step on Σ u^p itself, which rounds better.
    Beyond 2 it is bisection. With POWER 0 mass and slope are of weights e relative to the largest: Σ u^p is (-τ)^p Σ e.
    """
    if POWER == 0:
        total, scale = tl.maximum(mass, 1e-30), -tau
        rest = scale * total - tl.exp2((1 - alpha_minus_one) * tl.log2(total))
        mass = total * tl.exp2(tl.log2(scale) / alpha_minus_one)
    else:
        rest = tl.where(mass > 1.5, mass - tl.exp2((1 - alpha_minus_one) * tl.log2(tl.maximum(mass, 1e-30))), 0.0)
        rest = tl.where(mass > 1.5, rest, alpha_minus_one * (mass - 1))
    low = tl.where(mass >= 1, tau, low)
    high = tl.where(mass >= 1, high, tau)
    step = tl.maximum(rest, 0.0) / tl.where(slope > 0, slope, 1.0)
    middle = tl.where(high - low > 1e-7 * tl.abs(low), 0.5 * (low + high), low)
    return tl.where(alpha_minus_one <= 1, tau + step, middle), low, high


@triton.jit(do_not_specialize=["offset", "window", "queries", "keys"])
@no_type_check
def forward(
    query, key, value, context, edges,
    alphas, keep, mask, offsets, seed,
    alpha, passes, offset, window, scale, dropout, heads, group, queries, keys, size, value_size,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, POWER: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Kernel of a tile of queries: maximum score, threshold and context; every pass recomputes the scores."""
    q0, number = tl.program_id(0) * M, tl.program_id(1)
    b, h = number // heads, number % heads
    m = q0 + tl.arange(0, M)
    inside = m < queries
    first = find_first_position(offset, offsets, b)
    alpha_minus_one = load_alpha_minus_one(alphas, alpha, h)
    q = load_rows(query, b, h, m, inside, size, D)
    begin, end = find_key_bounds(q0, first, keys, window, None, inside, 0.0, M, N, CAUSAL, WINDOWED)
    if keep is not None:
        hole, last = find_kept_bounds(keep, b, keys, SCAN)  # noqa: RUF059  # _ would be carried by loops
        end = tl.minimum(end, last)

    row_max = tl.full([M], float("-inf"), tl.float32)
    has_nan = tl.zeros([M], tl.int32)  # NaN is lost in a maximum and below every threshold
    for k0 in range(begin, end, N):
        scores, _, _ = compute_masked_scores(
            q, key, keep, mask, b, h, group, m, k0 + tl.arange(0, N), first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        row_max = tl.maximum(row_max, tl.max(scores, 1))
        has_nan = tl.maximum(has_nan, tl.max((scores != scores).to(tl.int32), 1))
    has_nan = tl.where(row_max == float("inf"), 1, has_nan)
    active = inside & (row_max > float("-inf")) & (has_nan == 0)
    row_max = tl.where(active, row_max, 0.0)

    tau = tl.full([M], -1.0, tl.float32)  # here the best key alone has weight one, so the sum is at least one
    low = tl.full([M], -1.0, tl.float32)
    high = tl.zeros([M], tl.float32)
    one = tl.full([M], 1.0, tl.float32)
    remaining = tl.max(active.to(tl.int32), 0)
    step = 0
    while (remaining > 0) & (step < passes):
        mass = tl.zeros([M], tl.float32)
        slope = tl.zeros([M], tl.float32)
        for k0 in range(begin, end, N):
            scores, _, _ = compute_masked_scores(
                q, key, keep, mask, b, h, group, m, k0 + tl.arange(0, N), first, queries, keys, window, size, scale,
                CAUSAL, WINDOWED, D, PRECISION,
            )  # fmt: skip
            _, weights, slopes = compute_entmax_weights(scores, row_max, tau, one, alpha_minus_one, POWER)
            mass += tl.sum(weights, 1)
            slope += tl.sum(slopes, 1)
        next_tau, low, high = step_threshold(tau, low, high, mass, slope, alpha_minus_one, POWER)
        active = active & (next_tau != tau)
        tau = tl.where(active, next_tau, tau)
        remaining = tl.max(active.to(tl.int32), 0)
        step += 1
    tau = tl.where(alpha_minus_one <= 1, tau, low)

    acc = tl.zeros([M, V], tl.float32)
    mass = tl.zeros([M], tl.float32)
    for k0 in range(begin, end, N):
        n = k0 + tl.arange(0, N)
        scores, _, valid = compute_masked_scores(
            q, key, keep, mask, b, h, group, m, n, first, queries, keys, window, size, scale,
            CAUSAL, WINDOWED, D, PRECISION,
        )  # fmt: skip
        _, weights, slopes = compute_entmax_weights(scores, row_max, tau, one, alpha_minus_one, POWER)
        mass += tl.sum(weights, 1)
        if tl.max(tl.max(slopes, 1), 0) > 0:  # no values are read for zero weights
            if seed is not None:
                weights *= sample_dropout(seed, number, m, n, queries, keys, dropout)
            v = load_rows(value, b, h // group, n, valid, value_size, V)
            acc += tl.dot(weights.to(v.dtype), v, input_precision=PRECISION).to(tl.float32)
    mass = tl.where(mass > 0, mass, 1.0) if POWER == 0 else one
    acc = tl.where((has_nan > 0)[:, None], float("nan"), acc / mass[:, None])
    store_rows(context, b, h, m, inside, value_size, acc, V)
    row = number.to(tl.int64) * queries + m
    tl.store(edges + row, row_max, mask=inside)
    field = tl.num_programs(1).to(tl.int64) * queries
    tl.store(edges + field + row, tau, mask=inside)
    tl.store(edges + 2 * field + row, mass, mask=inside)
