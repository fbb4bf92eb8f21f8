"""Scores: how well does each key fit the query.

Each score has two sides and one comparison: `prepare` is the key's side, computed once per source, `project` the query's
side, and calling the score compares the two. A fused kernel takes both sides and does the comparison its own way. A score
that looks at positions is told them; `prepare` and `compare` call any score as it wants to be called, and `combine` lets a
score have its say in what is read.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard import registry
from regard.attention.scope import Offset


def prepare(
    score: Any, key: Float[Tensor, "batch key_heads keys key"], first: int = 0
) -> Float[Tensor, "batch prepared_heads keys dim"]:
    """The key's side of a score, for keys of which the first stands at position `first`."""
    prepared: Tensor = score.prepare(key, first) if positional(score) else score.prepare(key)
    return prepared


def compare(
    score: Any,
    query: Float[Tensor, "batch heads queries query"],
    prepared: Float[Tensor, "batch key_heads keys dim"],
    offset: Offset = 0,
) -> Float[Tensor, "batch scored_heads queries keys"]:
    """How well each key fits each query, of which the first stands at position `offset`."""
    scores: Tensor = score(query, prepared, offset) if positional(score) else score(query, prepared)
    return scores


def combine(
    score: Any,
    weights: Float[Tensor, "batch share_heads queries keys"],
    values: Float[Tensor, "batch value_heads keys value"],
    offset: Offset = 0,
) -> Float[Tensor, "batch heads queries value"]:
    """What queries read, of which the first stands at position `offset`: weights @ values, unless the score adds to it.

    In the precision of the values: a score whose bias is single beside halves has single weights.
    """
    weights = weights.to(values.dtype)
    read: Tensor = score.combine(weights, values, offset) if adds(score) else weights @ values
    return read


def adds(score: Any) -> bool:
    """Whether a score has a say in what is read."""
    return bool(getattr(score, "adds", False))


def positional(score: Any) -> bool:
    """Whether a score looks at positions."""
    return bool(getattr(score, "positional", False))


def places(count: int, offset: Offset, device: torch.device) -> Int[Tensor, "#batch count"]:
    """The positions of `count` queries or keys that begin at `offset`: one row for all, or one for each row of a batch."""
    counted = torch.arange(count, device=device)[None]
    return counted + (offset[:, None].to(device) if isinstance(offset, Tensor) else offset)


def distances(queries: int, keys: int, offset: Offset, device: torch.device) -> Int[Tensor, "#batch queries keys"]:
    """How far after each query each key stands, below 0 for one before it; the first query stands at `offset`."""
    return places(keys, 0, device)[:, None] - places(queries, offset, device)[:, :, None]


def same_size(name: str, query: int, key: int) -> None:
    """Raise where a score that compares dimension by dimension meets a query and a key of different sizes."""
    if query != key:
        raise ValueError(
            f"{name} needs queries and keys of one size, got {query} and {key}; Bilinear and Additive take different sizes"
        )


def fits(name: str, side: str, needed: int, given: int) -> None:
    """Raise where a learned score meets an input of another size than it was made for."""
    if needed != given:
        raise ValueError(f"{name} was made for {side} size {needed}, got {given}; build it with {side}={given}")


def __getattr__(name: str) -> Any:
    return registry.attribute(__name__, name)
