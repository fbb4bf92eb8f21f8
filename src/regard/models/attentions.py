"""One word for an attention: "additive", "scaled_dot+top_k", "transformer", "none"."""

from collections.abc import Callable
from typing import Any

from regard import lookup
from regard.attention.heads import MultiHead
from regard.attention.module import Attention
from regard.attention.scope import Scope
from regard.attention.scope.everywhere import Everywhere

Make = Callable[[int, int], Attention | None]
"""Makes an attention for the size of a query and the size of a key, or none: partial(attention, "additive")."""

PARTS = ("score", "normalise", "scope", "mechanisms")
PRODUCTS = ("dot", "scaled_dot", "cosine", "distance")
"""Scores that compare dimension by dimension."""

LONGEST = 1024
"""The longest source of the location score, which learns one row for each position."""


def attention(
    name: str,
    query: int,
    key: int,
    *,
    heads: int = 4,
    size: int | None = None,
    dropout: float = 0.0,
    scope: str = "everywhere",
) -> Attention | None:
    """The attention called `name`: stages or a mechanism, joined by +; "none" is none.

    What is not named is scaled_dot, softmax, everywhere; a scope that is named holds beside `scope`. A product of a query
    and a key of different sizes gets projections to one size (`size`, or else the query's). `heads` are those of the
    transformer; every other attention has one.
    """
    if name == "none":
        return None
    named = parts(name)
    options: dict[str, Any] = {"size": size, "dropout": dropout, "scope": both(scope, named.get("scope", "everywhere"))}
    if "normalise" in named:
        options["normalise"] = named["normalise"]
    if "mechanisms" in named:
        return mechanism(named["mechanisms"], query, key, heads, options)
    score = named.get("score", "scaled_dot")
    if score in PRODUCTS and query != key and size is None:
        options["size"] = size = query
    stage = lookup.build(score, "score", query=size or query, key=size or key, limit=LONGEST)
    return Attention(query, key, score=stage, **options)


def parts(name: str) -> dict[str, str]:
    """The name in each kind: "additive+sparsemax" is {"score": "additive", "normalise": "sparsemax"}."""
    found: dict[str, str] = {}
    for part in name.split("+"):
        kind = lookup.locate(part)
        if kind not in PARTS:
            raise ValueError(f"{part!r} is one of the {kind}; an attention is joined from {', '.join(PARTS)}")
        if kind in found:
            raise ValueError(f"{name!r} names two of the kind {kind}, {found[kind]} and {part}; name one")
        found[kind] = part
    if "mechanisms" in found and "score" in found:
        raise ValueError(
            f"{name!r} combines the mechanism {found['mechanisms']} with the score {found['score']}; "
            "a mechanism brings its own score, so name one of the two"
        )
    return found


def both(left: str, right: str) -> Scope:
    """Two scopes at once; one alone stays as it is, so that kernels know it."""
    scopes: list[Scope] = [lookup.build(each, "scope") for each in (left, right)]
    hiding = [each for each in scopes if not isinstance(each, Everywhere)]
    return hiding[0] & hiding[1] if len(hiding) == 2 else (hiding or scopes)[0]


def mechanism(name: str, query: int, key: int, heads: int, options: dict[str, Any]) -> Attention:
    """A mechanism, with as many heads as asked for where it has heads."""
    made: Callable[..., Attention] = lookup.find(name, "mechanisms")
    if not issubclass(lookup.find(name, "mechanisms"), MultiHead):
        return made(query, key, **options)
    size = options["size"] or query
    if heads < 1 or size % heads:
        raise ValueError(
            f"attention {name!r} needs a size that its heads divide, got size {size} and {heads} heads; "
            "choose a number of heads that divides the size"
        )
    return made(query, key, heads=heads, **options)
