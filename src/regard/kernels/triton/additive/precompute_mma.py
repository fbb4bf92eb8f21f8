"""Queries and keys transposed into words of four hidden units, as `compare_kernel` reads them for tensor cores.

It reads four units of a whole tile of queries or keys, so these are stored word by word, a word being four bfloat16: the
words of all rows are contiguous, then the next four units. Both q and k are transposed by one launch, and padded with 0.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive.precompute_exp import ROWS, RowRange, blocks, name_arguments

WORDS = 32
"""Words of each row in a program's tile."""


class TransposedWords(NamedTuple):
    """Transposed words, and the largest |x| of each block of ROWS rows."""

    data: Int[Tensor, "heads words rows"]
    reach: Float[Tensor, "heads blocks"]


def transpose_sides(left: RowRange, right: RowRange, words: int) -> tuple[TransposedWords, TransposedWords]:
    """Transpose q and k, padded to `words` words."""
    ours, theirs = (
        TransposedWords(side.data.new_empty(len(side.heads), words, side.tall, dtype=torch.int64), blocks(side))
        for side in (left, right)
    )
    hidden = left.data.shape[3]
    arguments = {
        **name_arguments("left", left, *ours),
        **name_arguments("right", right, *theirs),
        "D": hidden,
        "words": words,
        "programs": ours.reach.numel(),
        "ROWS": ROWS,
        "WORDS": WORDS,
        "WHOLE": hidden % 4 == 0 and all(side.data.data_ptr() % 8 == 0 for side in (left, right)),
    }
    launch_cached(transpose_kernel, (ours.reach.numel() + theirs.reach.numel(), 1, 1), arguments, num_warps=4)
    return ours, theirs


@triton.jit(
    do_not_specialize=[
        "left_base", "left_begin", "left_count", "left_time", "right_base", "right_begin", "right_count", "right_time",
        "programs",
    ]
)  # fmt: skip
@no_type_check
def transpose_kernel(
    left, right, left_output, right_output, left_reach, right_reach,
    left_base, left_begin, left_count, left_time, left_tall, right_base, right_begin, right_count, right_time, right_tall,
    D, words, programs,
    ROWS: tl.constexpr, WORDS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Kernel over both sides: the first `programs` have a block of the left side each, the others one of the right."""
    number = tl.program_id(0)
    if number < programs:
        write_block(
            left, left_output, left_reach, number, left_base, left_begin, left_count, left_time, D, left_tall, words,
            ROWS, WORDS, WHOLE,
        )  # fmt: skip
    else:
        write_block(
            right, right_output, right_reach, number - programs, right_base, right_begin, right_count, right_time, D,
            right_tall, words, ROWS, WORDS, WHOLE,
        )  # fmt: skip


@triton.jit
@no_type_check
def write_block(
    data, output, reach, number, base, begin, count, T, D, tall, words,
    ROWS: tl.constexpr, WORDS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Write the words of ROWS rows, and max |x| without NaN; WHOLE rows are loaded as words too."""
    blocks = (tall + ROWS - 1) // ROWS
    local = (number // blocks).to(tl.int64)
    places = number % blocks * ROWS + tl.arange(0, ROWS)
    data += ((base + local) * T + begin) * D
    output += local * tall * words
    largest = tl.zeros((WORDS, ROWS), tl.float32)
    for first in range(0, words, WORDS):
        word_indices = first + tl.arange(0, WORDS)
        present, cells = (places < count)[None, :], places.to(tl.int64)[None, :] * D + 4 * word_indices[:, None]
        if WHOLE:
            inside = present & (4 * word_indices < D)[:, None]
            bits = tl.load(data.to(tl.pointer_type(tl.int64)) + cells // 4, mask=inside, other=0)
        else:
            bits = tl.zeros((WORDS, ROWS), tl.int64)
            for unit in tl.static_range(4):
                inside = present & (4 * word_indices + unit < D)[:, None]
                element = tl.load(data.to(tl.pointer_type(tl.uint16)) + cells + unit, mask=inside, other=0)
                bits = bits | (element.to(tl.int64) << (16 * unit))
        a, b, c, d = unpack_word(bits)
        largest = tl.maximum(
            tl.maximum(largest, compute_absolute(a)),
            tl.maximum(compute_absolute(b), tl.maximum(compute_absolute(c), compute_absolute(d))),
        )
        tl.store(
            output + word_indices[:, None] * tall + places[None, :],
            bits,
            mask=(word_indices < words)[:, None] & (places < tall)[None, :],
        )
    tl.store(reach + number, tl.max(tl.max(largest, axis=1), axis=0))


@triton.jit
@no_type_check
def compute_absolute(x):
    """|x|, with NaN as 0."""
    return tl.abs(tl.where(x == x, x, 0.0))


@triton.jit
@no_type_check
def unpack_word(bits):
    """Unpack the four bfloat16 of a word into float32."""
    low, high = bits.to(tl.uint32), (bits >> 32).to(tl.uint32)
    a, b = (low << 16).to(tl.float32, bitcast=True), (low & 0xFFFF0000).to(tl.float32, bitcast=True)
    c, d = (high << 16).to(tl.float32, bitcast=True), (high & 0xFFFF0000).to(tl.float32, bitcast=True)
    return a, b, c, d
