"""Triton kernel of `beam.py`: a step of beam search in one launch, one program for each sentence."""

from typing import Any, no_type_check

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import EOS
from regard.decoding.engines.cuda.types import Counter
from regard.kernels.runtime import compile

MOST = 16
"""Maximum number of beams: the program is unrolled over them."""


@triton.jit
@no_type_check
def kernel(
    values, tokens, scores, ended, shares, longest, place, turn, figures, over, fed, parents, sentences, line,
    beams: tl.constexpr, extensions: tl.constexpr, best: tl.constexpr, eos: tl.constexpr,
    block: tl.constexpr, few: tl.constexpr,
):  # fmt: skip
    """Beam step of sentence s: beams x extensions candidates in descending order, of equal ones the leftmost first."""
    s = tl.program_id(0).to(tl.int64)
    now, share = tl.load(turn), tl.load(shares + tl.load(place))
    c, k = tl.arange(0, block), tl.arange(0, few)
    free = c < beams * extensions
    logprob = tl.load(values + s * beams * extensions + c, mask=free, other=float("-inf")).to(tl.float64)
    token = tl.load(tokens + s * beams * extensions + c, mask=free, other=0)
    total = tl.load(scores + s * beams + c // extensions, mask=free, other=float("-inf")) + logprob
    broken = tl.sum(tl.where(total != total, 1, 0), axis=0) > 0  # the host checks the first score for NaN
    pool = tl.load(ended + s * beams + k, mask=k < beams, other=float("-inf"))
    worth = tl.full([few], float("-inf"), tl.float64)
    out = figures + now * line + s * 2 * beams
    grown, growing = tl.full([], 0, tl.int32), tl.full([], float("-inf"), tl.float64)
    for number in tl.static_range(2 * beams):
        top = tl.max(tl.where(free, total, float("-inf")), axis=0)
        index = tl.min(tl.where(free & (total == top), c, beams * extensions - 1), axis=0)
        word = tl.sum(tl.where(c == index, token, 0), axis=0)
        tl.store(out + number, tl.where(broken, float("nan"), top))
        tl.store(out + 2 * sentences * beams + number, tl.sum(tl.where(c == index, logprob, 0.0), axis=0))
        tl.store(out + 4 * sentences * beams + number, word.to(tl.float64))
        tl.store(out + 6 * sentences * beams + number, (index // extensions).to(tl.float64))
        if number < beams:
            worth = tl.where((k == number) & (word == eos), top / share, worth)
        goes = (word != eos) & (grown < beams)
        tl.store(fed + s * beams + grown, word, mask=goes)
        tl.store(parents + s * beams + grown, (index // extensions).to(tl.int64), mask=goes)
        tl.store(scores + s * beams + grown, top, mask=goes)
        growing = tl.where(goes & (grown == 0), top, growing)
        grown += goes.to(tl.int32)
        free = free & (c != index)
    last, enough = growing, growing
    for number in tl.static_range(beams):
        left, right = tl.max(pool, axis=0), tl.max(worth, axis=0)
        top = tl.maximum(left, right)
        tl.store(ended + s * beams + number, top)
        if number == beams - 1:
            last = top
        if number == best - 1:
            enough = top
        first = tl.min(tl.where(pool == top, k, few), axis=0)  # one of several equal ones
        second = tl.min(tl.where(worth == top, k, few), axis=0)
        pool = tl.where(k == tl.where(left >= right, first, few), float("-inf"), pool)
        worth = tl.where(k == tl.where(left >= right, few, second), float("-inf"), worth)
    hopeless = tl.where(growing / tl.load(longest + s) <= enough, 1.0, 0.0)
    tl.store(over + now * line + s, tl.where(growing / share <= last, 1.0, hopeless))


def launch(
    beam: Any, values: Float[Tensor, "rows each"], tokens: Int[Tensor, "rows each"], place: Counter, turn: Counter
) -> None:
    """Launch one step of a `Beam`, from the top-k tokens of each of its rows."""
    sentences, beams = beam.scores.shape
    block = triton.next_power_of_2(beams * beam.extensions)
    few = triton.next_power_of_2(beams)
    options = (sentences, beam.results.stride(0), beams, beam.extensions, beam.best, EOS, block, few)
    state = (beam.scores, beam.ended, beam.shares, beam.longest, place, turn, beam.figures, beam.over)
    compile.launch(kernel, (sentences,), values, tokens, *state, beam.tokens, beam.parents, *options, num_warps=1)
