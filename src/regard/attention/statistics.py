"""Statistics of attention weights, per query or per key: entropy, largest weight, mean position, received mass.

Each statistic takes weights and the mask. `measure` takes given weights; `sweep` computes the weights of a few queries at
a time, so that a fused attention has statistics without ever holding T x S. `measure` and `sweep` detach; the functions
themselves are differentiable.

Shares are p = |a| / Σ |a|: for normalisers whose weights sum to one these are the weights.
"""

import re
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.normalise import widen
from regard.attention.types import Request

Weights = Float[Tensor, "batch heads queries keys"]
Row = Float[Tensor, "batch heads queries"]
Column = Float[Tensor, "batch heads keys"]
Allowed = Bool[Tensor, "#batch #heads #queries keys"] | None

BLOCK = 1 << 22
"""The most weights that `sweep` holds at a time on a CPU, where they stay in cache."""
BLOCK_GPU = 1 << 25
"""The most weights that `sweep` holds at a time on a GPU, where each operation costs a launch."""


def entropy(weights: Weights) -> Row:
    """Entropy -Σ p log p in nats: 0 for one-hot weights, log S for uniform ones; exp(entropy) is effective keys."""
    return _compute_entropy(shares(weights))


def largest(weights: Weights) -> Row:
    """The largest weight of each query."""
    return weights.amax(-1)


def position(weights: Weights) -> Int[Tensor, "batch heads queries"]:
    """The argmax key of each query."""
    return weights.argmax(-1)


def mean_position(weights: Weights) -> Row:
    """Mean attended position Σ p k."""
    return _compute_mean(shares(weights))


def spread_of_position(weights: Weights) -> Row:
    """The standard deviation of the attended position."""
    return _compute_spread(shares(weights))


def received(weights: Weights) -> Column:
    """Column sums Σ_q a: the mass that each key receives from all queries."""
    return weights.sum(-2)


def uniform(weights: Weights, allowed: Allowed) -> Column:
    """Column sums of uniform weights over the allowed keys.

        uniform_k = Σ_q allowed(q, k) / (number of keys that q may see)

    Queries / keys without a mask, and H_n - H_k under a causal mask: divide `received` by it, or every causal model seems to
    forget its latest tokens.
    """
    batch, heads, queries, keys = weights.shape
    if allowed is None:
        return weights.new_full((batch, heads, keys), 1.0) * queries / keys
    visible = allowed.expand(*allowed.shape[:2], queries, keys).to(weights.dtype)
    even = visible / visible.sum(-1, keepdim=True).clamp_min(1)
    return even.sum(-2).expand(batch, heads, keys)


def shares(weights: Weights) -> Weights:
    """Normalised weights |a| / Σ |a|, zeros for a query whose weights are all zero."""
    total = weights.abs().sum(-1, keepdim=True)
    return weights.abs() / torch.where(total > 0, total, 1.0)


BY_QUERY: dict[str, Callable[[Tensor], Tensor]] = {
    "entropy": entropy,
    "max": largest,
    "argmax": position,
    "mean_position": mean_position,
    "spread": spread_of_position,
}
BY_KEY = ("received", "uniform")


def check_names(names: tuple[str, ...]) -> None:
    """Raise for an unknown statistic."""
    if isinstance(names, str):
        raise ValueError(f"statistics needs a tuple of names, got a text; write ({names!r},)")
    for name in names:
        if name not in BY_QUERY and name not in BY_KEY and not re.fullmatch(r"top_[1-9]\d*", name):
            raise ValueError(
                f"there is no statistic {name!r}; there are {', '.join((*BY_QUERY, *BY_KEY))}, and top_3 for the best three"
            )


def measure(weights: Weights, allowed: Allowed, names: tuple[str, ...]) -> dict[str, Tensor]:
    """The statistics called `names`; top_3 gives the three largest weights, and their keys as top_3_keys."""
    weights = widen(weights.detach())  # half precision is inexact for positions beyond a few hundred
    p = shares(weights) if any(name in OF_SHARES for name in names) else weights
    values: dict[str, Tensor] = {}
    for name in names:
        if name in OF_SHARES:
            values[name] = OF_SHARES[name](p)
        elif name in BY_QUERY:
            values[name] = BY_QUERY[name](weights)
        elif name == "received":
            values[name] = received(weights)
        elif name == "uniform":
            values[name] = uniform(weights, allowed)
        else:
            best_weights = weights.topk(min(int(name[4:]), weights.shape[-1]), dim=-1)
            values[name], values[f"{name}_keys"] = best_weights.values, best_weights.indices
    return values


def select_block(weights: Tensor) -> int:
    """The most weights to hold at a time on a tensor's device."""
    return BLOCK_GPU if weights.is_cuda else BLOCK


def sweep(request: Request) -> dict[str, Tensor]:
    """The statistics of a request, whose weights are computed for a few queries at a time."""
    return _sweep(request) if request.statistics else {}


@torch.no_grad()
def _sweep(request: Request) -> dict[str, Tensor]:
    batch, heads, queries, _ = request.query.shape
    rows = max(1, select_block(request.query) // max(1, batch * heads * request.keys.shape[2]))
    blocks = []
    for first in range(0, max(queries, 1), rows):
        part = request._replace(query=request.query[:, :, first : first + rows], offset=request.offset + first)
        allowed = part.allowed
        some = getattr(request.normalise, "some", None)  # of a normaliser with parameters per query
        normalise = request.normalise if some is None else some(slice(first, first + rows))
        weights = normalise(part.scores(), allowed)
        assert isinstance(weights, Tensor), "a stochastic normaliser has no kernel, so nothing to sweep"
        blocks.append(measure(weights, allowed, request.statistics))
    return {name: _join_parts([block[name] for block in blocks], name) for name in blocks[0]}


def _join_parts(parts: list[Tensor], name: str) -> Tensor:
    return torch.stack(parts).sum(0) if name in BY_KEY else torch.cat(parts, dim=2)


def _compute_entropy(p: Weights) -> Row:
    return -torch.xlogy(p, p).sum(-1)


def _compute_mean(p: Weights) -> Row:
    return p @ _build_key_positions(p)


def _compute_spread(p: Weights) -> Row:
    ruler = _build_key_positions(p)
    return (p * (ruler - (p @ ruler)[..., None]).square()).sum(-1).sqrt()


def _build_key_positions(weights: Tensor) -> Tensor:
    return torch.arange(weights.shape[-1], device=weights.device, dtype=weights.dtype)


OF_SHARES = {"entropy": _compute_entropy, "mean_position": _compute_mean, "spread": _compute_spread}
"""Statistics of the shares, which `measure` computes once for all of them."""
