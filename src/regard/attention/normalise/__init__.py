"""Normalisers: turn scores into attention weights.

Each takes scores and a mask of the allowed keys (None: all), and gives exactly 0 to masked keys. A query without an allowed
key gets zero weights and passes no gradient, by the two functions here: `hide` before, `silence` after.
"""

import math
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import registry

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.normalise.entmax import Entmax
    from regard.attention.normalise.gumbel import Gumbel
    from regard.attention.normalise.hard import Hard
    from regard.attention.normalise.identity import Identity
    from regard.attention.normalise.marginal import Marginal
    from regard.attention.normalise.sigmoid import Sigmoid
    from regard.attention.normalise.softmax import Softmax
    from regard.attention.normalise.sparsemax import Sparsemax
    from regard.attention.normalise.structured import Structured
    from regard.attention.normalise.sum_to_one import SumToOne
    from regard.attention.normalise.top_k import TopK

__all__ = [
    "Entmax",
    "Gumbel",
    "Hard",
    "Identity",
    "Marginal",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
    "Structured",
    "SumToOne",
    "TopK",
]


Scores = Float[Tensor, "batch heads queries keys"]
Allowed = Bool[Tensor, "#batch #heads #queries keys"]


def hide(scores: Scores, allowed: Allowed | None) -> Scores:
    """Mask scores by minus infinity; a query without an allowed key keeps its scores, so that there is no NaN."""
    if allowed is None:
        return scores
    return scores.masked_fill(~allowed & allowed.any(-1, keepdim=True), -math.inf)


def silence(weights: Scores, allowed: Allowed | None) -> Scores:
    """Set the weights of masked keys to exactly 0, in value and gradient."""
    return weights if allowed is None else weights.masked_fill(~allowed, 0.0)


def visible(allowed: Allowed) -> Allowed:
    """The mask, all True for a query without an allowed key; `silence` zeroes that row at the end."""
    return allowed | ~allowed.any(-1, keepdim=True)


def widen(scores: Scores) -> Scores:
    """Cast to float32 at least, for sums that would overflow or lose small terms in half precision."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        return registry.find_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
