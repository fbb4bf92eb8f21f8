"""Averages of an ensemble: log-probabilities of the next token, and memories of the encoders."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.types import Encoded
from regard.tree import leaves, map_tree

Logs = Float[Tensor, "*rows vocabulary"]
"""Log-probabilities."""
Average = Callable[[Sequence[Tensor], Sequence[float]], Tensor]


def probabilities(logs: Sequence[Logs], shares: Sequence[float]) -> Logs:
    """The weighted mean of the probabilities: a token is likely where any member finds it so.

    log p(y) = log Σ_k w_k p_k(y)
    """
    weighted = [log + math.log(share) for log, share in zip(logs, shares, strict=True) if share > 0]
    return torch.stack(weighted).logsumexp(0)


def logits(logs: Sequence[Logs], shares: Sequence[float]) -> Logs:
    """The weighted mean of the logits, which is that of the log-probabilities, scaled to sum to one: a token is likely where
    all members find it so, and impossible where one does.

        log p(y) = Σ_k w_k log p_k(y) - log Z
    """
    weighted = [share * log for log, share in zip(logs, shares, strict=True) if share > 0]
    return torch.stack(weighted).sum(0).log_softmax(-1)


AVERAGES: dict[str, Average | None] = {"probabilities": probabilities, "logits": logits, "memories": None}
"""Averages of members, by name; memories are averaged before any token is decoded."""


def blend(encoded: Sequence[Encoded], shares: Sequence[float]) -> Encoded:
    """The weighted mean of what several encoders read in one source, place by place.

        h_t = Σ_k w_k h_kt

    What is no number between others, as which places are real, is the first one's.
    """
    columns = zip(*(leaves(source, Tensor) for source in encoded), strict=True)
    mean: Encoded = map_tree(lambda _: _mean(next(columns), shares), encoded[0])
    return mean


def _mean(tensors: tuple[Tensor, ...], shares: Sequence[float]) -> Tensor:
    if not tensors[0].is_floating_point():
        return tensors[0]
    return torch.stack([share * tensor for tensor, share in zip(tensors, shares, strict=True)]).sum(0)
