"""Deterministic top-k of each row."""

from jaxtyping import Float, Int
from torch import Tensor


def select_highest(
    scores: Float[Tensor, "rows candidates"], count: int
) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
    """Top-k scores of each row and their indices, best first; of equal scores the leftmost.

    `topk` alone leaves open which of several equal scores it takes and in which order. Where a tie straddles the last place,
    the row is sorted in full; else only the top k are put in order. Of scores of -infinity any may be returned.
    """
    values, places = scores.topk(min(count, scores.shape[-1]))
    last = values[:, -1:]
    tied = ((scores == last).sum(-1) > (values == last).sum(-1)) & (last[:, 0] > float("-inf"))
    if tied.any():
        ordered, where = scores[tied].sort(dim=-1, descending=True, stable=True)
        values[tied], places[tied] = ordered[:, : values.shape[1]], where[:, : values.shape[1]]
    places, order = places.sort(dim=-1)
    values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, places.gather(-1, order)
