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
    query, keys, values, keep, output, length, scale, key_s, key_h, key_p, value_s, value_h, value_p,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr, VALUE: tl.constexpr,
    D: tl.constexpr, V: tl.constexpr, N: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Kernel of one head of one row, N keys at a time."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    s, d, dims = row // WIDTH, tl.arange(0, D), tl.arange(0, V)
    q = tl.load(query + (row * HEADS + head) * DIM + d, mask=d < DIM, other=0.0).to(tl.float32) * scale
    keys += s * key_s + head * key_h
    values += s * value_s + head * value_h
    row_max, total, acc = tl.full([], float("-inf"), tl.float32), 0.0, tl.zeros([V], tl.float32)
    for first in range(0, length, N):
        p = first + tl.arange(0, N)
        keep_mask = tl.load(keep + s * length + p, mask=p < length, other=0) != 0
        rows = p[:, None]
        k = tl.load(keys + rows * key_p + d[None, :], mask=keep_mask[:, None] & (d < DIM)[None, :], other=0.0).to(tl.float32)
        v = tl.load(values + rows * value_p + dims[None, :], mask=keep_mask[:, None] & (dims < VALUE)[None, :], other=0.0)
        scores = tl.where(keep_mask, tl.sum(q[None, :] * k, 1), float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 0))
        base = tl.where(new_max == float("-inf"), 0.0, new_max)
        rescale, weights = tl.exp(row_max - base), tl.exp(scores - base)
        total = rescale * total + tl.sum(weights, 0)
        acc = rescale * acc + tl.sum(weights[:, None] * v.to(tl.float32), 0)
        row_max = new_max
    acc = acc / tl.where(total == 0.0, 1.0, total)
    tl.store(output + (row * HEADS + head) * VALUE + dims, acc.to(output.dtype.element_ty), mask=dims < VALUE)


def cross_attend(
    query: Float[Tensor, "rows size"],
    keys: Float[Tensor, "sentences heads keys dim"],
    values: Float[Tensor, "sentences heads keys value"],
    keep: Bool[Tensor, "sentences keys"],
    scale: float,
    tile: Tile,
    early: bool = False,
) -> Float[Tensor, "rows found"]:
    """Context of each row, with its heads concatenated; the elements of a key, and of a value, are contiguous."""
    (sentences, heads, length, dim), value, rows = keys.shape, values.shape[3], len(query)
    output = query.new_empty(rows, heads * value)
    sizes = {"DIM": dim, "VALUE": value, "D": triton.next_power_of_2(dim), "V": triton.next_power_of_2(value)}
    with use_device(query):
        compile.launch(
            attend_kernel, (rows, heads),
            query, keys, values, keep, output, length, scale, *keys.stride()[:3], *values.stride()[:3],
            WIDTH=rows // sentences, HEADS=heads, **sizes,
            N=tile.keys, num_warps=tile.warps, **build_launch_options(early),
        )  # fmt: skip
    return output
