"""The additive score of a tile of queries and keys by matrix products, four hidden units at a time, and one reciprocal.

    Σ v_i tanh x_i = Σ_s c_s e^{±x_1 ±x_2 ±x_3 ±x_4} / Σ_s e^{±x_1 ±x_2 ±x_3 ±x_4},    c_s = ±v_1 ±v_2 ±v_3 ±v_4

over the sixteen choices s of signs: below stands the product of all 2 cosh x_i. With x = q + k an exponential is a number of
the query times one of the key, so that either sum is a product of matrices with sixteen columns, which tensor cores take; of
what a thread does for every query and key a reciprocal and a multiply-add are left, where two units of the rational form
take seven steps. In tf32, to which every exponential is rounded, a score of bfloat16 is ten times closer than where PyTorch
adds and bends in bfloat16. What is lost is the same whatever x is, so that of small numbers, whose tanh PyTorch has to the
last place, each tanh is taken by itself.
Range: in a tile whose largest |q| and |k| add up to at most 18 the product of four is at most e^72, which leaves room for v.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.additive.precompute_mma import numbers
from regard.kernels.triton.additive.score_rational import reciprocal

FAR = tl.constexpr(18.0)
"""The largest |q| + |k| for which the product of four is taken."""
NEAR = tl.constexpr(0.5)
"""And the least, of the largest two of a tile."""


@triton.jit
@no_type_check
def fourfold(
    left, right, v, start, end, tall, wide,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, ASSEMBLY: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Σ v tanh over hidden units from `start` to `end`, whole words; `left` and `right` point at word 0 of their tiles.

    v has WORDS of bfloat16 too, or numbers.
    """
    left += start // 4 * tall + tl.arange(0, ROWS)[None, None, :]
    right += start // 4 * wide + tl.arange(0, COLUMNS)[None, None, :]
    found = tl.zeros((ROWS, COLUMNS), tl.float32)
    for unit in range(start, end, 4):
        below, above = sums(left, right, v + unit, ROWS, COLUMNS, ASSEMBLY, WORDS)
        found += above * reciprocal(below, ASSEMBLY)
        left += tall
        right += wide
    return found


@triton.jit
@no_type_check
def sums(left, right, v, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ASSEMBLY: tl.constexpr, WORDS: tl.constexpr):
    """Both sums of four hidden units, below and above, by one product: the rows of the one follow those of the other.

    So the queries' side never leaves the registers, and what the tensor cores read is made known to them once.
    """
    a, b, c, d = vector(v, WORDS)
    powers = signed(tl.load(left), ROWS)
    steep = (sign(0, 0) * a + sign(0, 1) * b) + (sign(1, 0) * c + sign(1, 1) * d)
    ours = tl.permute(tl.join(rounded(powers, ASSEMBLY), rounded(powers * steep, ASSEMBLY)), (0, 1, 3, 2))
    theirs = tl.reshape(rounded(signed(tl.load(right), COLUMNS), ASSEMBLY), (16, COLUMNS))
    found = tl.dot(tl.trans(tl.reshape(ours, (16, 2 * ROWS))), theirs, input_precision="tf32")
    return tl.split(tl.permute(tl.reshape(found, (2, ROWS, COLUMNS)), (1, 2, 0)))


@triton.jit
@no_type_check
def vector(place, WORDS: tl.constexpr):
    """Four numbers of v."""
    if WORDS:
        a, b, c, d = numbers(tl.load(place.to(tl.pointer_type(tl.int64))))
    else:
        a, b = tl.load(place).to(tl.float32), tl.load(place + 1).to(tl.float32)
        c, d = tl.load(place + 2).to(tl.float32), tl.load(place + 3).to(tl.float32)
    return a, b, c, d


@triton.jit
@no_type_check
def signed(bits, COUNT: tl.constexpr):
    """e^{±a ±b ±c ±d} of COUNT rows, (4, 4, COUNT), of which threads have the last axis: either pair is raised once."""
    a, b, c, d = numbers(bits)
    a, b, c, d = a * 1.4426950408889634, b * 1.4426950408889634, c * 1.4426950408889634, d * 1.4426950408889634
    first = tl.broadcast_to(sign(0, 0) * a + sign(0, 1) * b, (4, 4, COUNT))
    second = tl.broadcast_to(sign(1, 0) * c + sign(1, 1) * d, (4, 4, COUNT))
    return tl.exp2(first) * tl.exp2(second)


@triton.jit
@no_type_check
def sign(axis: tl.constexpr, bit: tl.constexpr):
    """-1 or 1, as that bit of a place along that axis says."""
    found = (((tl.arange(0, 4) >> bit) & 1) * 2 - 1).to(tl.float32)
    return found[:, None, None] if axis == 0 else found[None, :, None]


@triton.jit
@no_type_check
def rounded(x, ASSEMBLY: tl.constexpr):
    """To the nearest that tf32 has; tensor cores drop the rest, the interpreter multiplies all."""
    return (x.to(tl.uint32, bitcast=True) + 0x1000).to(tl.float32, bitcast=True) if ASSEMBLY else x
