"""Normalisers: turn scores into attention weights.

Each takes scores and a mask of the allowed keys (None: all), and gives exactly 0 to masked keys. A query without an allowed
key gets zero weights and passes no gradient, by the two functions here: `hide` before, `silence` after.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import registry

Scores = Float[Tensor, "batch heads queries keys"]
Allowed = Bool[Tensor, "#batch #heads #queries keys"]


def hide(scores: Scores, allowed: Allowed | None) -> Scores:
    """Mask scores by minus infinity; a query without an allowed key keeps its scores, so that there is no NaN."""
    if allowed is None:
        return scores
    return scores.masked_fill(~visible(allowed), -math.inf)


def silence(weights: Scores, allowed: Allowed | None) -> Scores:
    """Set the weights of masked keys to exactly 0, in value and gradient."""
    return weights if allowed is None else weights.masked_fill(~allowed, 0.0)


def visible(allowed: Allowed) -> Allowed:
    """The mask, all True for a query without an allowed key; `silence` zeroes that row at the end."""
    return allowed | ~allowed.any(-1, keepdim=True)


def widen(scores: Scores) -> Scores:
    """Cast to float32 at least, for sums that would overflow or lose small terms in half precision."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def __getattr__(name: str) -> Any:
    return registry.find_attribute(__name__, name)
