"""Hypothesis: the result of every search, with its log-probabilities and attention weights."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.decoding.copies import Copy


class Hypothesis(NamedTuple):
    """Hypothesis: `logprobs` are the model's own, token by token, `score` is their sum and `normalised` is what ranks it.

    The tokens are without BOS and with EOS, unless the length limit cut the target off: then `finished` is False. The
    weights, if asked for, are one row per token for each attention, by the attention's name; padded keys of the source are
    removed, so that they do not depend on the batch that the sentence was in.
    """

    tokens: list[int]
    score: float
    normalised: float
    logprobs: list[float]
    finished: bool
    weights: dict[str, Float[Tensor, "heads steps keys"]] | None = None
    copies: list[Copy] | None = None
    """Tokens that were copied from the source, if asked for."""
