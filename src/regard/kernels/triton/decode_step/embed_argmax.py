"""Embedding with positions at the start of a decoder step, and the update of scores and tokens at its end.

x = E[y] scale + PE_t,        score += log p
"""

from typing import no_type_check

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from regard.kernels.runtime import compile
from regard.kernels.triton.decode_step.tile import use_device

ROWS = 128
"""Sentences of a program."""


@triton.jit
@no_type_check
def embed_kernel(tokens, table, positions, position, output, scale, SIZE: tl.constexpr, D: tl.constexpr):
    """Kernel of one row of the embedding."""
    row, d = tl.program_id(0).to(tl.int64), tl.arange(0, D)
    inside = d < SIZE
    vector = tl.load(table + tl.load(tokens + row) * SIZE + d, mask=inside, other=0.0).to(tl.float32) * scale
    vector += tl.load(positions + tl.load(position) * SIZE + d, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + row * SIZE + d, vector.to(output.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def update_kernel(values, tokens, scores, figures, fed, turn, sentences, N: tl.constexpr):
    """Kernel that updates some sentences; the last of the four figures of each, its row, is constant."""
    s = tl.program_id(0) * N + tl.arange(0, N)
    inside = s < sentences
    value = tl.load(values + s, mask=inside, other=0.0).to(tl.float64)
    token = tl.load(tokens + s, mask=inside, other=0)
    score = tl.load(scores + s, mask=inside, other=0.0) + value
    line = figures + tl.load(turn) * 4 * sentences + s
    tl.store(scores + s, score, mask=inside)
    tl.store(fed + s, token, mask=inside)
    tl.store(line, score, mask=inside)
    tl.store(line + sentences, value, mask=inside)
    tl.store(line + 2 * sentences, token.to(tl.float64), mask=inside)


def embed_tokens(
    tokens: Int[Tensor, " rows"],
    table: Float[Tensor, "vocabulary size"],
    scale: float,
    positions: Float[Tensor, "room size"],
    position: Int[Tensor, " 1"],
) -> Float[Tensor, "rows size"]:
    """Embed tokens at a position."""
    size, output = table.shape[1], table.new_empty(len(tokens), table.shape[1])
    with use_device(table):
        compile.launch(
            embed_kernel, (len(tokens),), tokens, table, positions, position, output, scale,
            SIZE=size, D=triton.next_power_of_2(size), num_warps=4,
        )  # fmt: skip
    return output


def update_scores(
    values: Float[Tensor, "sentences 1"],
    tokens: Int[Tensor, "sentences 1"],
    scores: Float[Tensor, "sentences 1"],
    figures: Float[Tensor, "turns 4 sentences 1"],
    fed: Int[Tensor, " sentences"],
    turn: Int[Tensor, " 1"],
) -> None:
    """Accumulate the scores, store score, log-probability and token of this step, and set the next input token."""
    sentences = len(fed)
    with use_device(values):
        compile.launch(
            update_kernel, (triton.cdiv(sentences, ROWS),), values, tokens, scores, figures, fed, turn, sentences,
            N=ROWS, num_warps=4,
        )  # fmt: skip
