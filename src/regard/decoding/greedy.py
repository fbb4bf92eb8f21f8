"""Greedy search (the eager reference implementation)."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.constraints.state import Guard
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.stepwise import decode_stepwise
from regard.models.types import Decoder
from regard.tree import Tree


def greedy(
    decoder: Decoder,
    memory: Tree,
    *,
    length: int | Sequence[int],
    weights: bool = False,
    unknown: bool = True,
    guard: Guard | None = None,
) -> list[Hypothesis]:
    """Greedy search: one hypothesis for each sentence, in the order of the sentences.

        y_t = argmax_y  P(y | X, y_1 ... y_t-1)

    Of equally likely tokens the lowest id wins. `length` is the maximum length of a target, EOS included: one number for
    all, or one for each sentence. `unknown=False` forbids UNK. A `guard` holds the constraints of each target.
    """
    return decode_stepwise(decoder, memory, choose_most_likely, length=length, weights=weights, unknown=unknown, guard=guard)


def choose_most_likely(logs: Float[Tensor, "rows vocabulary"]) -> Int[Tensor, " rows"]:
    """Most likely token of each row, the first of several."""
    return logs.argmax(-1)
