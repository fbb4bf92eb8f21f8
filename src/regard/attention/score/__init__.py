"""Scores: how well does each key fit the query.

Each score has two sides and one comparison: `prepare` is the key's side, computed once per source, `project` the query's
side, and calling the score compares the two. A fused kernel takes both sides and does the comparison its own way.
"""

from typing import Any

from regard import lookup


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
    return lookup.attribute(__name__, name)
