"""What every search gives back: a target, how likely the model finds it, and where it looked."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Found(NamedTuple):
    """One target. `logprobs` are the model's own, token by token, `score` is their sum and `normalised` what ranked it.

    The tokens are without BOS and with EOS, unless the length limit cut the target off: then `finished` is False. The
    weights, where they were asked for, are one row per token for each attention, by the attention's name; keys of the
    source's padding are cut away, so that they do not depend on the batch that the sentence was in.
    """

    tokens: list[int]
    score: float
    normalised: float
    logprobs: list[float]
    finished: bool
    weights: dict[str, Float[Tensor, "heads steps keys"]] | None = None
