"""The additive score of a tile of queries and keys, by one reciprocal for every two hidden units.

    tanh(q + k) = 1 - 2 r,    r = 1 / (1 + e^{2q} e^{2k}),    a / x + b / y = (a y + b x) / (x y)

The exponentials are per query and per key and come ready made (see `powers`), so that the special-function units, which
would take a tanh for every pair and unit, take half a reciprocal instead; the rest is three multiply-adds.
Range: in a tile whose largest |q| and |k| add up to at most 21 a denominator is at most 1 + e^42, and the product of two
stays finite with nothing clamped; NaN stays NaN. A tile beyond takes r of the sum, which overflows to 0 as it should.
"""

from typing import no_type_check

import triton
import triton.language as tl

REACH = tl.constexpr(21.0)
"""The largest |q| + |k| for which the exponentials are taken apart."""
FAINT = tl.constexpr(1.0)
"""The least, of the largest two of a tile, in single precision: r is 6e-8 off whatever x is, tanh of a small x is not."""
FAINTEST = tl.constexpr(1e-3)
"""The same in half precision, which knows no more of a tanh than that."""


@triton.jit
@no_type_check
def exponential(x):
    """e^{2x} with an error of a few units in the last place: what x · 2 log₂e loses in rounding is put back."""
    scaled = x * 2.885390043258667
    lost = tl.fma(x, 2.885390043258667, -scaled) + x * 3.851926e-08
    whole = tl.exp2(scaled)
    return whole + whole * (lost * 0.6931471805599453)


@triton.jit
@no_type_check
def reciprocal(x, ASSEMBLY: tl.constexpr):
    """1 / x; in assembly it is one instruction, exact to a unit in the last place."""
    if ASSEMBLY:
        found = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    else:
        found = 1.0 / x
    return found


@triton.jit
@no_type_check
def plain(x, ASSEMBLY: tl.constexpr):
    """r = (1 - tanh x) / 2 of any x, by an exponential and a reciprocal."""
    return reciprocal(1.0 + tl.exp(2.0 * x), ASSEMBLY)


@triton.jit
@no_type_check
def bent(x, ASSEMBLY: tl.constexpr):
    """-tanh(x) / 2 of any x, to the last place: of a small one by Lambert's continued fraction, since r is close to 1/2."""
    square = x * x
    over = tl.fma(square, tl.fma(square, tl.fma(square, 1.0, 378.0), 17325.0), 135135.0)
    under = tl.fma(square, tl.fma(square, tl.fma(square, 28.0, 3150.0), 62370.0), 135135.0)
    small = tl.abs(x) < 1.0
    fraction = over * reciprocal(tl.where(small, under, 1.0), ASSEMBLY)
    return tl.where(small, -0.5 * x * fraction, plain(x, ASSEMBLY) - 0.5)


@triton.jit
@no_type_check
def spread(COUNT: tl.constexpr, THREADS: tl.constexpr):
    """The places of a tile along one axis, (each, threads): what a thread has is each of one column.

    Four of its places are beside each other, where it has as many, so that they are loaded at once.
    """
    BESIDE: tl.constexpr = COUNT // THREADS if COUNT // THREADS < 4 else 4
    each = tl.arange(0, COUNT // THREADS)[:, None]
    return each // BESIDE * (BESIDE * THREADS) + tl.arange(0, THREADS)[None, :] * BESIDE + each % BESIDE


@triton.jit
@no_type_check
def paired(
    left, right, v, start, end,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, PAIRS: tl.constexpr,
    ASSEMBLY: tl.constexpr,
):  # fmt: skip
    """Σ v tanh over hidden units from `start` to `end`, whole pairs; `left` and `right` point at unit 0 of their tiles.

    Unit follows unit there without a gap, so that every place within an iteration is known to the compiler. Nothing is
    masked: what lies beyond either end is e^0, and v is 0 there. The tile has four axes, (rows, columns, DOWN, ACROSS), of
    which the last two are the threads: so it is said, and not left to the compiler, how many rows and how many columns a
    thread has, and with that how many numbers it loads for its products.
    """
    fall, level = tl.zeros((ROWS // DOWN, COLUMNS // ACROSS, DOWN, ACROSS), tl.float32), 0.0
    left += start * ROWS + spread(ROWS, DOWN)
    right += start * COLUMNS + spread(COLUMNS, ACROSS)
    v += start
    for _ in range(start, end, 2 * PAIRS):
        for pair in tl.static_range(PAIRS):
            one, two = 2 * pair, 2 * pair + 1
            x = tl.fma(tl.load(left + one * ROWS)[:, None, :, None], tl.load(right + one * COLUMNS)[None, :, None, :], 1.0)
            y = tl.fma(tl.load(left + two * ROWS)[:, None, :, None], tl.load(right + two * COLUMNS)[None, :, None, :], 1.0)
            a, b = tl.load(v + one).to(tl.float32), tl.load(v + two).to(tl.float32)
            fall += (a * y + b * x) * reciprocal(x * y, ASSEMBLY)
            level += a + b
        left += 2 * PAIRS * ROWS
        right += 2 * PAIRS * COLUMNS
        v += 2 * PAIRS
    return level - 2.0 * fall


@triton.jit
@no_type_check
def summed(
    query, key, v, rows, columns, T, S, D, start, end,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, ASSEMBLY: tl.constexpr,
):  # fmt: skip
    """The same for numbers of any size, from queries and keys as they came, to the last place of each."""
    found = tl.zeros((ROWS // DOWN, COLUMNS // ACROSS, DOWN, ACROSS), tl.float32)
    left, right = query + rows.to(tl.int64) * D, key + columns.to(tl.int64) * D
    for d in range(start, tl.minimum(end, D)):
        q = tl.load(left + d, mask=rows < T, other=0.0).to(tl.float32)
        k = tl.load(right + d, mask=columns < S, other=0.0).to(tl.float32)
        found += tl.load(v + d).to(tl.float32) * bent(q[:, None, :, None] + k[None, :, None, :], ASSEMBLY)
    return -2.0 * found
