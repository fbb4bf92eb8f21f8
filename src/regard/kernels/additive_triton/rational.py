"""The additive score of a tile of queries and keys, by one reciprocal for every two hidden units.

    tanh(q + k) = 1 - 2 r,    r = 1 / (1 + e^{2q} e^{2k}),    a / x + b / y = (a y + b x) / (x y)

The exponentials are per query and per key, so that the special-function units, which would take a tanh for every pair and
unit, take half a reciprocal instead. Σ v is the same for every key and cancels in a softmax, so a tile is -2 Σ v r.
Range: with |q| and |k| up to 40 both exponentials are within e^±80, and their product is clamped at e^40, so that the
product of two denominators stays finite. A tile that goes beyond takes r of the sum, which overflows to 0 as it should.
"""

from typing import no_type_check

import triton
import triton.language as tl

REACH = tl.constexpr(40.0)
"""The largest |q| or |k| for which the exponentials are taken apart."""

CLAMP = tl.constexpr(2.3538526683702e17)
"""e^40: beyond it r is below 5e-18, which is 0 beside any other."""


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
def denominator(left, right):
    """1 + e^{2q} e^{2k}, at most 1 + e^40. NaN stays NaN, or nobody would learn of it."""
    return 1.0 + tl.minimum(left * right, CLAMP, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
@no_type_check
def feature(data, d, length, places, D, EVEN: tl.constexpr):
    """Hidden unit d of some queries or keys, from a feature-major matrix; 0 beyond either end."""
    inside = places < length
    if not EVEN:
        inside = inside & (d < D)
    return tl.load(data + d * length + places, mask=inside, other=0.0).to(tl.float32)


@triton.jit
@no_type_check
def factor(v, d, D, EVEN: tl.constexpr):
    """v of hidden unit d; 0 beyond the last."""
    found = tl.load(v + d) if EVEN else tl.load(v + d, mask=d < D, other=0.0)
    return found.to(tl.float32)


@triton.jit
@no_type_check
def compare(
    query, key, v, wild, rows, columns, T, S, D,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PAIRS: tl.constexpr, EVEN: tl.constexpr, ASSEMBLY: tl.constexpr,
):  # fmt: skip
    """-2 Σ_d v_d r_d for a tile of queries and keys, both feature-major."""
    fall = tl.zeros((ROWS, COLUMNS), tl.float32)
    if wild:
        for d in range(D):
            q, k = feature(query, d, T, rows, D, True), feature(key, d, S, columns, D, True)
            fall += factor(v, d, D, True) * plain(q[:, None] + k[None, :], ASSEMBLY)
    else:
        for start in range(0, D, 2 * PAIRS):
            for pair in tl.static_range(PAIRS):
                d = start + 2 * pair
                q1, q2 = feature(query, d, T, rows, D, EVEN), feature(query, d + 1, T, rows, D, EVEN)
                k1, k2 = feature(key, d, S, columns, D, EVEN), feature(key, d + 1, S, columns, D, EVEN)
                x = denominator(exponential(q1)[:, None], exponential(k1)[None, :])
                y = denominator(exponential(q2)[:, None], exponential(k2)[None, :])
                fall += (factor(v, d, D, EVEN) * y + factor(v, d + 1, D, EVEN) * x) * reciprocal(x * y, ASSEMBLY)
    return -2.0 * fall
