"""Cross-attention of a decoder step to a source shared by the hypotheses of a sentence: softmax(q kᵀ scale) v, masked.

A row without a visible key has a zero context.
"""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels.runtime import compile
from regard.kernels.triton.decode_step.tile import Tile, build_launch_options, use_device


@triton.jit
@no_type_check
def attend_kernel(
    asked, keys, values, keep, found, length, scale, key_s, key_h, key_p, value_s, value_h, value_p,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr, VALUE: tl.constexpr,
    D: tl.constexpr, V: tl.constexpr, N: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Kernel of one head of one row, N keys at a time."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    s, d, v = row // WIDTH, tl.arange(0, D), tl.arange(0, V)
    query = tl.load(asked + (row * HEADS + head) * DIM + d, mask=d < DIM, other=0.0).to(tl.float32) * scale
    keys += s * key_s + head * key_h
    values += s * value_s + head * value_h
    highest, total, read = tl.full([], float("-inf"), tl.float32), 0.0, tl.zeros([V], tl.float32)
    for first in range(0, length, N):
        p = first + tl.arange(0, N)
        seen = tl.load(keep + s * length + p, mask=p < length, other=0) != 0
        here = p[:, None]
        key = tl.load(keys + here * key_p + d[None, :], mask=seen[:, None] & (d < DIM)[None, :], other=0.0).to(tl.float32)
        value = tl.load(values + here * value_p + v[None, :], mask=seen[:, None] & (v < VALUE)[None, :], other=0.0)
        scores = tl.where(seen, tl.sum(query[None, :] * key, 1), float("-inf"))
        above = tl.maximum(highest, tl.max(scores, 0))
        base = tl.where(above == float("-inf"), 0.0, above)
        falls, weights = tl.exp(highest - base), tl.exp(scores - base)
        total = falls * total + tl.sum(weights, 0)
        read = falls * read + tl.sum(weights[:, None] * value.to(tl.float32), 0)
        highest = above
    read = read / tl.where(total == 0.0, 1.0, total)
    tl.store(found + (row * HEADS + head) * VALUE + v, read.to(found.dtype.element_ty), mask=v < VALUE)


def cross_attend(
    asked: Float[Tensor, "rows size"],
    keys: Float[Tensor, "sentences heads keys dim"],
    values: Float[Tensor, "sentences heads keys value"],
    keep: Bool[Tensor, "sentences keys"],
    scale: float,
    tile: Tile,
    early: bool = False,
) -> Float[Tensor, "rows found"]:
    """Context of each row, with its heads concatenated; the elements of a key, and of a value, are contiguous."""
    (sentences, heads, length, dim), value, rows = keys.shape, values.shape[3], len(asked)
    found = asked.new_empty(rows, heads * value)
    sizes = {"DIM": dim, "VALUE": value, "D": triton.next_power_of_2(dim), "V": triton.next_power_of_2(value)}
    with use_device(asked):
        compile.launch(
            attend_kernel, (rows, heads),
            asked, keys, values, keep, found, length, scale, *keys.stride()[:3], *values.stride()[:3],
            WIDTH=rows // sentences, HEADS=heads, **sizes,
            N=tile.keys, num_warps=tile.warps, **build_launch_options(early),
        )  # fmt: skip
    return found
