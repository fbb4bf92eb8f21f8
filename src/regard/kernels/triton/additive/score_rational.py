"""Additive score of a tile with precomputed exponentials, by one reciprocal for every two hidden units.

    tanh(q + k) = 1 - 2 r,    r = 1 / (1 + e^{2q} e^{2k}),    a / x + b / y = (a y + b x) / (x y)

The exponentials are per query and per key (precompute_exp.py), so that the special-function units compute half a
reciprocal per pair and hidden unit in place of a tanh; the rest is three multiply-adds.
Range: in a tile whose largest |q| and |k| sum to at most 21 a denominator is at most 1 + e^42, and the product of two
is finite without clamping; NaN stays NaN. A tile beyond takes r of q + k, whose overflow to 0 is right.
"""

from typing import no_type_check

import triton
import triton.language as tl

MAX_REACH = tl.constexpr(21.0)
"""The largest |q| + |k| for which e^{2q} and e^{2k} are separate."""
MIN_REACH = tl.constexpr(1.0)
"""The smallest |q| + |k| of a tile in float32: r has an error of 6e-8 for any x, too much for tanh of a small x."""
MIN_REACH_HALF = tl.constexpr(1e-3)
"""The smallest |q| + |k| of a tile in half precision."""


@triton.jit
@no_type_check
def exponential(x):
    """e^{2x} to a few units in the last place: the rounding error of x · 2 log₂e is compensated."""
    scaled = x * 2.885390043258667
    lost = tl.fma(x, 2.885390043258667, -scaled) + x * 3.851926e-08
    whole = tl.exp2(scaled)
    return whole + whole * (lost * 0.6931471805599453)


@triton.jit
@no_type_check
def reciprocal(x, ASSEMBLY: tl.constexpr):
    """1 / x to a unit in the last place; one PTX instruction with ASSEMBLY."""
    if ASSEMBLY:
        inverse = tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        inverse = 1.0 / x
    return inverse


@triton.jit
@no_type_check
def compute_rational_tanh(x, ASSEMBLY: tl.constexpr):
    """r = (1 - tanh x) / 2 by an exponential and a reciprocal."""
    return reciprocal(1.0 + tl.exp(2.0 * x), ASSEMBLY)


@triton.jit
@no_type_check
def compute_exact_tanh(x, ASSEMBLY: tl.constexpr):
    """-tanh(x) / 2 to the last place: for small x by Lambert's continued fraction, since r is close to 1/2."""
    square = x * x
    numerator = tl.fma(square, tl.fma(square, tl.fma(square, 1.0, 378.0), 17325.0), 135135.0)
    denominator = tl.fma(square, tl.fma(square, tl.fma(square, 28.0, 3150.0), 62370.0), 135135.0)
    small = tl.abs(x) < 1.0
    fraction = numerator * reciprocal(tl.where(small, denominator, 1.0), ASSEMBLY)
    return tl.where(small, -0.5 * x * fraction, compute_rational_tanh(x, ASSEMBLY) - 0.5)


@triton.jit
@no_type_check
def build_tile_indices(COUNT: tl.constexpr, THREADS: tl.constexpr):
    """Indices of a tile along one axis, (indices, threads): a column belongs to one thread.

    Four of its indices are contiguous, if it has as many, so that they are one vector load.
    """
    BESIDE: tl.constexpr = COUNT // THREADS if COUNT // THREADS < 4 else 4
    indices = tl.arange(0, COUNT // THREADS)[:, None]
    return indices // BESIDE * (BESIDE * THREADS) + tl.arange(0, THREADS)[None, :] * BESIDE + indices % BESIDE


@triton.jit
@no_type_check
def score_by_pairs(
    left, right, v, start, end,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, PAIRS: tl.constexpr,
    ASSEMBLY: tl.constexpr,
):  # fmt: skip
    """Scores Σ v tanh over hidden units from `start` to `end`, whole pairs; `left` and `right` point at unit 0 of a tile.

    Units are contiguous there, so that every offset within an iteration is a compile-time constant. Loads are unmasked: the
    padding is e^0, and v is 0 there. The tile has four axes, (rows, columns, DOWN, ACROSS), of which the last two are the
    threads: this fixes the rows and columns of a thread, and so its loads per product, which the compiler would choose
    otherwise.
    """
    acc, v_sum = tl.zeros((ROWS // DOWN, COLUMNS // ACROSS, DOWN, ACROSS), tl.float32), 0.0
    left += start * ROWS + build_tile_indices(ROWS, DOWN)
    right += start * COLUMNS + build_tile_indices(COLUMNS, ACROSS)
    v += start
    for _ in range(start, end, 2 * PAIRS):
        for pair in tl.static_range(PAIRS):
            one, two = 2 * pair, 2 * pair + 1
            x = tl.fma(tl.load(left + one * ROWS)[:, None, :, None], tl.load(right + one * COLUMNS)[None, :, None, :], 1.0)
            y = tl.fma(tl.load(left + two * ROWS)[:, None, :, None], tl.load(right + two * COLUMNS)[None, :, None, :], 1.0)
            a, b = tl.load(v + one).to(tl.float32), tl.load(v + two).to(tl.float32)
            acc += (a * y + b * x) * reciprocal(x * y, ASSEMBLY)
            v_sum += a + b
        left += 2 * PAIRS * ROWS
        right += 2 * PAIRS * COLUMNS
        v += 2 * PAIRS
    return v_sum - 2.0 * acc


@triton.jit
@no_type_check
def score_exactly(
    query, key, v, rows, columns, T, S, D, start, end,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, ASSEMBLY: tl.constexpr,
):  # fmt: skip
    """Scores for numbers of any size, from the unmodified queries and keys, with each tanh to the last place."""
    acc = tl.zeros((ROWS // DOWN, COLUMNS // ACROSS, DOWN, ACROSS), tl.float32)
    left, right = query + rows.to(tl.int64) * D, key + columns.to(tl.int64) * D
    for d in range(start, tl.minimum(end, D)):
        q = tl.load(left + d, mask=rows < T, other=0.0).to(tl.float32)
        k = tl.load(right + d, mask=columns < S, other=0.0).to(tl.float32)
        acc += tl.load(v + d).to(tl.float32) * compute_exact_tanh(q[:, None, :, None] + k[None, :, None, :], ASSEMBLY)
    return -2.0 * acc
