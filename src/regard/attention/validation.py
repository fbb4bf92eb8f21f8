"""Validation of the arguments of attend(), with messages that say what was needed, what was given, what to do."""

import math
from typing import Any

from torch import Tensor

from regard.attention.scope import Offset, Scope
from regard.attention.statistics import check_names
from regard.attention.types import Memory


def check_inputs(query: Tensor, key: Tensor, value: Tensor, score: Any, normalise: Any, scope: Any, statistics: Any) -> None:
    """Raise where shapes and stages do not fit together."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim != 4:
            raise ValueError(
                f"attend needs a {name} of (batch, heads, positions, dim), got {tuple(tensor.shape)}; "
                "one head is tensor[:, None]"
            )
    if not (query.shape[0] == key.shape[0] == value.shape[0]):
        raise ValueError(
            f"attend needs one batch size, got {query.shape[0]} for queries, {key.shape[0]} for keys and "
            f"{value.shape[0]} for values; expand the smaller ones"
        )
    if key.shape[1:3] != value.shape[1:3]:
        raise ValueError(
            f"attend needs a value for each key, got keys of (heads, keys) {tuple(key.shape[1:3])} "
            f"and values of {tuple(value.shape[1:3])}"
        )
    if query.shape[1] % key.shape[1]:
        raise ValueError(
            f"{query.shape[1]} query heads cannot share {key.shape[1]} key heads evenly; "
            f"choose a number of key heads that divides {query.shape[1]}"
        )
    check_stages(score, normalise, scope)
    check_names(statistics)


def check_alignment(query: Tensor, memory: Memory, offset: Offset | None) -> None:
    """Raise where a memory or an offset was made for another batch than the query's."""
    keys, values = memory.keys.shape, memory.values.shape
    if keys[0] != query.shape[0] or values[0] != query.shape[0]:
        raise ValueError(f"a memory of {keys[0]} rows met queries of {query.shape[0]}; there must be one for each")
    if keys[2] != values[2]:
        raise ValueError(
            f"a memory needs a value for each key, got {keys[2]} keys and {values[2]} values; remember both anew"
        )
    if isinstance(offset, Tensor) and (offset.is_floating_point() or offset.shape != query.shape[:1]):
        raise ValueError(
            f"offset needs to be a whole number, or one for each of {query.shape[0]} rows, "
            f"got {offset.dtype} of shape {tuple(offset.shape)}"
        )


def check_stages(score: Any, normalise: Any, scope: Any) -> None:
    """Raise where an argument is no stage, or where a score and a normaliser do not fit together."""
    for role, stage, mark, example in (
        ("score", score, "prepare", "ScaledDot()"),
        ("normalise", normalise, "sums_to_one", "Softmax()"),
    ):
        if isinstance(stage, type) or not callable(stage) or not hasattr(stage, mark):
            raise TypeError(
                f"{role} needs a built stage such as {example}, got {stage!r}; regard.find(name) gives the class"
            )
    if isinstance(scope, Tensor):
        raise TypeError(
            f"scope needs a Scope such as Causal(), got a {scope.dtype} tensor; "
            "a boolean mask of (batch, keys), True where a key may be seen, becomes Padding(mask)"
        )
    if not isinstance(scope, Scope):
        raise TypeError(f"scope needs a Scope such as Causal(), got {scope!r}; regard.find(name) gives the class")
    refuses = getattr(normalise, "refuses", None)
    reason = refuses(getattr(score, "highest", math.inf)) if refuses else None
    if reason:
        raise ValueError(f"{type(score).__name__} and {type(normalise).__name__} make no sense together: {reason}")
