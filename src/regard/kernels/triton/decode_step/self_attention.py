"""Self-attention of a decoder step over a KV cache that beam search never reorders; appends the new key and value.

    softmax(q [k_1 ... k_t]ᵀ scale) [v_1 ... v_t]        k_i, v_i: written by row `past[i]` of the sentence at position i

Beam search reorders only the table of back-pointers `past`, and a row reads no key but those of its hypothesis.
"""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels.runtime import compile
from regard.kernels.triton.decode_step.tile import Tile, build_launch_options, use_device

COLUMNS = 128
"""Positions of the table per iteration."""


@triton.jit
@no_type_check
def attend_kernel(
    qkv, cache, past, position, output, length, scale,
    WIDTH: tl.constexpr, SIZE: tl.constexpr, DIM: tl.constexpr, D: tl.constexpr, N: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Kernel of one head of one row: first its new key, then those before it, N at a time."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row, head = tl.program_id(0), tl.program_id(1)
    t, d = tl.load(position).to(tl.int32), tl.arange(0, D)
    inside = d < DIM
    side = qkv + row.to(tl.int64) * 3 * SIZE + head * DIM + d
    query = tl.load(side, mask=inside, other=0.0).to(tl.float32) * scale
    key, value = tl.load(side + SIZE, mask=inside, other=0.0), tl.load(side + 2 * SIZE, mask=inside, other=0.0)
    line = cache + (row // WIDTH).to(tl.int64) * length * WIDTH * 2 * SIZE + head * DIM
    cell = line + (t * WIDTH + row % WIDTH).to(tl.int64) * 2 * SIZE + d
    tl.store(cell, key, mask=inside)
    tl.store(cell + SIZE, value, mask=inside)

    row_max, total, acc = tl.sum(query * key.to(tl.float32), 0), 1.0, value.to(tl.float32)
    for first in range(0, t, N):
        p = first + tl.arange(0, N)
        before = p < t
        writer = tl.zeros([N], tl.int32)
        if WIDTH > 1:
            writer = tl.load(past + row.to(tl.int64) * length + p, mask=before, other=0)
        at = line + ((p * WIDTH + writer).to(tl.int64) * 2 * SIZE)[:, None] + d[None, :]
        mask = before[:, None] & inside[None, :]
        keys = tl.load(at, mask=mask, other=0.0).to(tl.float32)
        values = tl.load(at + SIZE, mask=mask, other=0.0).to(tl.float32)
        scores = tl.where(before, tl.sum(query[None, :] * keys, 1), float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 0))
        rescale, weights = tl.exp(row_max - new_max), tl.exp(scores - new_max)
        total = rescale * total + tl.sum(weights, 0)
        acc = rescale * acc + tl.sum(weights[:, None] * values, 0)
        row_max = new_max
    tl.store(output + row.to(tl.int64) * SIZE + head * DIM + d, (acc / total).to(output.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def follow_kernel(past, parents, position, length, WIDTH: tl.constexpr, W: tl.constexpr, N: tl.constexpr):
    """Kernel of one sentence: each row takes its parent's back-pointers, and itself at the current position."""
    s, t, w = tl.program_id(0).to(tl.int64), tl.load(position), tl.arange(0, W)
    row = (w < WIDTH)[:, None]
    parent = tl.load(parents + s * WIDTH + w, mask=w < WIDTH, other=0)
    table = past + s * WIDTH * length
    for first in range(0, t + 1, N):
        p = (first + tl.arange(0, N))[None, :]
        parent_rows = tl.load(table + parent[:, None] * length + p, mask=row & (p < t), other=0)
        tl.debug_barrier()  # all threads read before any writes
        tl.store(table + w[:, None] * length + p, tl.where(p == t, w[:, None], parent_rows), mask=row & (p <= t))


def self_attend(
    qkv: Float[Tensor, "rows sides"],
    cache: Float[Tensor, "sentences room width both"],
    past: Int[Tensor, "sentences width room"],
    position: Int[Tensor, " 1"],
    heads: int,
    scale: float,
    tile: Tile,
    early: bool = False,
) -> Float[Tensor, "rows size"]:
    """Context of each row, from its packed query, key and value."""
    _, length, width, both = cache.shape
    rows, size = len(qkv), both // 2
    output = qkv.new_empty(rows, size)
    numbers = {"WIDTH": width, "SIZE": size, "DIM": size // heads, "D": triton.next_power_of_2(size // heads)}
    with use_device(qkv):
        compile.launch(
            attend_kernel, (rows, heads), qkv, cache, past, position, output, length, scale, **numbers,
            N=tile.keys, num_warps=tile.warps, **build_launch_options(early),
        )  # fmt: skip
    return output


def follow_parents(
    past: Int[Tensor, "sentences width room"], parents: Int[Tensor, "sentences width"], position: Int[Tensor, " 1"]
) -> None:
    """Update the back-pointers in place by each row's parent hypothesis."""
    sentences, width, length = past.shape
    with use_device(past):
        compile.launch(
            follow_kernel, (sentences,), past, parents, position, length,
            WIDTH=width, W=triton.next_power_of_2(width), N=min(COLUMNS, length), num_warps=1,
        )  # fmt: skip
