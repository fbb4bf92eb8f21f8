"""Normalisers: how fit becomes a share of attention.

Each takes scores and a mask of what is allowed (None: everything), and gives exactly 0 where nothing may be seen. A query
that may see nothing gets zeros and passes no gradient, which is what the two functions here are for: `hide` before,
`silence` after.
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
    """Minus infinity where a key is not allowed; a query that may see nothing keeps its scores, so no NaN is born."""
    if allowed is None:
        return scores
    return scores.masked_fill(~visible(allowed), -math.inf)


def silence(weights: Scores, allowed: Allowed | None) -> Scores:
    """Exactly 0, in value and gradient, where a key is not allowed."""
    return weights if allowed is None else weights.masked_fill(~allowed, 0.0)


def visible(allowed: Allowed) -> Allowed:
    """What is allowed, and the whole row of a query that may see nothing: `silence` takes that back at the end."""
    return allowed | ~allowed.any(-1, keepdim=True)


def widen(scores: Scores) -> Scores:
    """At least single precision, for sums that would overflow or lose their small terms in half."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def __getattr__(name: str) -> Any:
    return registry.attribute(__name__, name)
