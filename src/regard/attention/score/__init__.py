"""Scores of each key for each query.

Each score has two sides and a comparison: `prepare` is the key's side, computed once per source, `project` the query's
side, and calling the score compares them. A fused kernel takes both sides and compares them its own way. A positional
score takes positions too; `prepare` and `compare` call any score by its own signature, and `combine` adds what a score
contributes to the context.
"""

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard import registry
from regard.attention.scope import Offset

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.score.additive import Additive
    from regard.attention.score.alibi import Alibi
    from regard.attention.score.bilinear import Bilinear
    from regard.attention.score.concat import Concat
    from regard.attention.score.cosine import Cosine
    from regard.attention.score.distance import Distance
    from regard.attention.score.dot import Dot
    from regard.attention.score.feature_map import FeatureMap
    from regard.attention.score.location import Location
    from regard.attention.score.relative import Relative
    from regard.attention.score.rotary import Rotary
    from regard.attention.score.scaled_dot import ScaledDot
    from regard.attention.score.shaw import Shaw
    from regard.attention.score.softcap import Softcap
    from regard.attention.score.t5 import T5
    from regard.attention.score.transformer_xl import TransformerXl

__all__ = [
    "T5",
    "Additive",
    "Alibi",
    "Bilinear",
    "Concat",
    "Cosine",
    "Distance",
    "Dot",
    "FeatureMap",
    "Location",
    "Relative",
    "Rotary",
    "ScaledDot",
    "Shaw",
    "Softcap",
    "TransformerXl",
]


def prepare(
    score: Any, key: Float[Tensor, "batch key_heads keys key"], first: int = 0
) -> Float[Tensor, "batch prepared_heads keys dim"]:
    """The key's side of a score; `first` is the position of the first key."""
    prepared: Tensor = score.prepare(key, first) if is_positional(score) else score.prepare(key)
    return prepared


def compare(
    score: Any,
    query: Float[Tensor, "batch heads queries query"],
    prepared: Float[Tensor, "batch key_heads keys dim"],
    offset: Offset = 0,
) -> Float[Tensor, "batch scored_heads queries keys"]:
    """The scores of each query and key; `offset` is the position of the first query."""
    scores: Tensor = score(query, prepared, offset) if is_positional(score) else score(query, prepared)
    return scores


def combine(
    score: Any,
    weights: Float[Tensor, "batch share_heads queries keys"],
    values: Float[Tensor, "batch value_heads keys value"],
    offset: Offset = 0,
) -> Float[Tensor, "batch heads queries value"]:
    """The context: weights @ values, and what the score adds to it; `offset` is the position of the first query.

    It has the precision of the values: a float32 bias beside half precision gives float32 weights.
    """
    weights = weights.to(values.dtype)
    read: Tensor = score.combine(weights, values, offset) if adds_to_context(score) else weights @ values
    return read


def adds_to_context(score: Any) -> bool:
    """True if a score contributes to the context."""
    return bool(getattr(score, "adds", False))


def is_positional(score: Any) -> bool:
    """True if a score takes positions."""
    return bool(getattr(score, "positional", False))


def build_positions(count: int, offset: Offset, device: torch.device) -> Int[Tensor, "#batch count"]:
    """The positions of `count` queries or keys that begin at `offset`: one row for all, or one for each row of a batch."""
    counted = torch.arange(count, device=device)[None]
    return counted + (offset[:, None].to(device) if isinstance(offset, Tensor) else offset)


def compute_relative_positions(
    queries: int, keys: int, offset: Offset, device: torch.device
) -> Int[Tensor, "#batch queries keys"]:
    """Relative positions key - query; `offset` is the position of the first query."""
    return build_positions(keys, 0, device)[:, None] - build_positions(queries, offset, device)[:, :, None]


def require_same_size(name: str, query: int, key: int) -> None:
    """Raise where a score that compares dimension by dimension meets a query and a key of different sizes."""
    if query != key:
        raise ValueError(
            f"{name} needs queries and keys of one size, got {query} and {key}; Bilinear and Additive take different sizes"
        )


def require_size(name: str, side: str, needed: int, size: int) -> None:
    """Raise where a learned score meets an input of another size than it was made for."""
    if needed != size:
        raise ValueError(f"{name} was made for {side} size {needed}, got {size}; build it with {side}={size}")


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        return registry.find_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
