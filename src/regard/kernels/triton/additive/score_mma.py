"""Additive score of a tile on tensor cores: four hidden units at a time by matrix products and one reciprocal.

    Σ v_i tanh x_i = Σ_s c_s e^{±x_1 ±x_2 ±x_3 ±x_4} / Σ_s e^{±x_1 ±x_2 ±x_3 ±x_4},    c_s = ±v_1 ±v_2 ±v_3 ±v_4

over the sixteen choices s of signs: the denominator is the product of all 2 cosh x_i. With x = q + k an exponential is a
factor of the query times one of the key, so that either sum is a matrix product with inner dimension sixteen on tensor
cores; a reciprocal and a multiply-add per query and key are left to the threads, where two units of the rational form take
seven instructions. With exponentials rounded to tf32, a score of bfloat16 inputs is ten times more exact than PyTorch's sum
and tanh in bfloat16. The absolute error is independent of x, so that for small numbers, whose tanh PyTorch has to the last
place, each tanh is computed by itself.
Range: in a tile whose largest |q| and |k| add up to at most 18 the product of four is at most e^72, which leaves room for v.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.additive.precompute_mma import unpack_word
from regard.kernels.triton.additive.score_rational import reciprocal

MMA_MAX_REACH = tl.constexpr(18.0)
"""The largest |q| + |k| for which the product of four is taken."""
MMA_MIN_REACH = tl.constexpr(0.5)
"""The smallest of the tile's largest |q| + |k| for which it is taken."""


@triton.jit
@no_type_check
def score_by_four(
    left, right, v, start, end, tall, wide,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, ASSEMBLY: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Scores Σ v tanh over hidden units from `start` to `end`, whole words; `left` and `right` point at word 0 of a tile.

    v is in WORDS of bfloat16 too, or in single numbers.
    """
    left += start // 4 * tall + tl.arange(0, ROWS)[None, None, :]
    right += start // 4 * wide + tl.arange(0, COLUMNS)[None, None, :]
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for unit in range(start, end, 4):
        denominator, numerator = sum_products(left, right, v + unit, ROWS, COLUMNS, ASSEMBLY, WORDS)
        acc += numerator * reciprocal(denominator, ASSEMBLY)
        left += tall
        right += wide
    return acc


@triton.jit
@no_type_check
def sum_products(left, right, v, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ASSEMBLY: tl.constexpr, WORDS: tl.constexpr):
    """Denominator and numerator of four hidden units by one matrix product, stacked along the rows.

    So the query's factors never leave the registers, and the operand in shared memory is set up once.
    """
    a, b, c, d = load_vector(v, WORDS)
    powers = compute_signed_exponentials(tl.load(left), ROWS)
    signed_v = (compute_sign(0, 0) * a + compute_sign(0, 1) * b) + (compute_sign(1, 0) * c + compute_sign(1, 1) * d)
    q_factors = tl.permute(
        tl.join(round_to_tf32(powers, ASSEMBLY), round_to_tf32(powers * signed_v, ASSEMBLY)), (0, 1, 3, 2)
    )
    k_factors = tl.reshape(round_to_tf32(compute_signed_exponentials(tl.load(right), COLUMNS), ASSEMBLY), (16, COLUMNS))
    products = tl.dot(tl.trans(tl.reshape(q_factors, (16, 2 * ROWS))), k_factors, input_precision="tf32")
    return tl.split(tl.permute(tl.reshape(products, (2, ROWS, COLUMNS)), (1, 2, 0)))


@triton.jit
@no_type_check
def load_vector(source, WORDS: tl.constexpr):
    """Load four numbers of v."""
    if WORDS:
        a, b, c, d = unpack_word(tl.load(source.to(tl.pointer_type(tl.int64))))
    else:
        a, b = tl.load(source).to(tl.float32), tl.load(source + 1).to(tl.float32)
        c, d = tl.load(source + 2).to(tl.float32), tl.load(source + 3).to(tl.float32)
    return a, b, c, d


@triton.jit
@no_type_check
def compute_signed_exponentials(bits, COUNT: tl.constexpr):
    """Factors e^{±a ±b ±c ±d} of COUNT rows, (4, 4, COUNT), with threads along the last axis, by two exponentials a pair."""
    a, b, c, d = unpack_word(bits)
    a, b, c, d = a * 1.4426950408889634, b * 1.4426950408889634, c * 1.4426950408889634, d * 1.4426950408889634
    first = tl.broadcast_to(compute_sign(0, 0) * a + compute_sign(0, 1) * b, (4, 4, COUNT))
    second = tl.broadcast_to(compute_sign(1, 0) * c + compute_sign(1, 1) * d, (4, 4, COUNT))
    return tl.exp2(first) * tl.exp2(second)


@triton.jit
@no_type_check
def compute_sign(axis: tl.constexpr, bit: tl.constexpr):
    """Signs -1 or 1 by a bit of the index along an axis."""
    signs = (((tl.arange(0, 4) >> bit) & 1) * 2 - 1).to(tl.float32)
    return signs[:, None, None] if axis == 0 else signs[None, :, None]


@triton.jit
@no_type_check
def round_to_tf32(x, ASSEMBLY: tl.constexpr):
    """Round to the nearest tf32; tensor cores would truncate, the interpreter would not round."""
    return (x.to(tl.uint32, bitcast=True) + 0x1000).to(tl.float32, bitcast=True) if ASSEMBLY else x
