"""Attention factory: builds an attention from a name such as "additive", "scaled_dot+top_k", "transformer" or "none"."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from regard import registry
from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.normalise.marginal import Marginal
from regard.attention.scope import Scope
from regard.attention.scope.everywhere import Everywhere
from regard.config.parameters import IMPLIED, assign_parameters
from regard.config.settings import AttentionPart

AttentionFactory = Callable[[int, int], Attention | None]
"""Factory of an attention from the sizes of query and key; may return None: partial(attention, "additive")."""

PARTS = ("score", "normalise", "scope", "mechanisms")


def omit_attention(query: int, key: int) -> None:
    """Factory of no attention: for a layer that does not read the source."""
    return


def attention_options(part: AttentionPart) -> dict[str, Any]:
    """Options of build_attention that a part of a config holds beside its name."""
    return {"heads": part.heads, "size": part.size, "parameters": part.parameters}


def build_attention(
    name: str,
    query: int,
    key: int,
    *,
    heads: int = 4,
    size: int | None = None,
    dropout: float = 0.0,
    scope: str = "everywhere",
    limit: int = 1024,
    bias: bool = True,
    parameters: Mapping[str, Any] | None = None,
) -> Attention | None:
    """Build the attention called `name`: stages or a mechanism, joined by +; "none" gives None.

    Stages that are not named are scaled_dot, softmax and everywhere; a named scope is intersected with `scope`. A mechanism
    that takes a score may be joined with one. A dot product of query and key of different sizes gets projections to one size
    (`size`, or else the query's). `heads` applies to multi-head mechanisms; `limit` is the maximum source length of a score
    with parameters for each position; without `bias` its projections have none. `parameters` are those of its stages
    (config/parameters.py).
    """
    if name == "none":
        return None
    named = split_name(name)
    if "mechanisms" not in named:
        named.setdefault("score", "scaled_dot")
    options: dict[str, Any] = {"size": size, "dropout": dropout, "limit": limit} | ({} if bias else {"bias": False})
    stages, own = fill_stages(name, named, parameters or {})
    options |= {kind: stages[kind] for kind in ("score", "normalise") if kind in stages}
    options["scope"] = intersect_scopes(scope, stages.get("scope", "everywhere"))
    if "score" in named and query != key and size is None:
        options["size"] = query if getattr(registry.find(named["score"], "score"), "one_size", False) else None
    if "mechanisms" in named:
        return build_mechanism(named["mechanisms"], query, key, heads, options | own)
    return Attention(query, key, **options)


def fill_stages(name: str, named: Mapping[str, str], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The stages of a name by kind, each a name or, where it has parameters, a partial; and those of a mechanism."""
    stages: dict[str, Any] = {kind: part for kind, part in named.items() if kind != "mechanisms"}
    assigned = assign_parameters(name, parameters)
    if "mechanisms" not in named:
        named = IMPLIED | dict(named)
    for kind, part in named.items():
        if kind != "mechanisms" and (values := assigned.get(registry.label(part))):
            component: Any = registry.find(part, kind)
            stages[kind] = partial(component, **values)
    return stages, assigned.get(registry.label(named.get("mechanisms", "")), {})


def build_self_attention(
    name: str, width: int, heads: int, *, dropout: float = 0.0, scope: str = "everywhere", limit: int = 1024, **options: Any
) -> MultiHead:
    """Build a Transformer layer's self-attention from the name of a score, normaliser or scope, or several joined by +.

    `width` is the hidden size of the layer; options are MultiHead's, such as the `size` that it projects to.
    """
    named = split_name(name)
    if "mechanisms" in named:
        raise ValueError(
            f"self-attention is made of stages, and {named['mechanisms']!r} is a mechanism; "
            "name a score, a normaliser or a scope, such as rotary or alibi+local"
        )
    stages: dict[str, Any] = {kind: named[kind] for kind in ("score", "normalise") if kind in named}
    where = intersect_scopes(scope, named.get("scope", "everywhere"))
    attention = MultiHead(width, heads=heads, scope=where, dropout=dropout, limit=limit, **stages, **options)
    if isinstance(attention.normalise, Marginal):
        raise ValueError(
            f"{name!r} names marginal, which is about what a decoder writes and would be softmax here; name softmax"
        )
    if getattr(attention.normalise, "rewarded", False):
        raise ValueError(
            f"{name!r} draws where it looks, which only an attention to the source is taught to do; "
            "use gumbel, whose gradient passes through, or a normaliser that draws nothing"
        )
    return attention


def split_name(name: str) -> dict[str, str]:
    """Split an attention's name by kind: "additive+sparsemax" is {"score": "additive", "normalise": "sparsemax"}."""
    parts: dict[str, str] = {}
    for part in name.split("+"):
        kind = registry.locate(part)
        if kind not in PARTS:
            raise ValueError(f"{part!r} is one of the {kind}; an attention is joined from {', '.join(PARTS)}")
        if kind in parts:
            raise ValueError(f"{name!r} names two of the kind {kind}, {parts[kind]} and {part}; name one")
        parts[kind] = part
    if "mechanisms" in parts and "score" in parts and not accepts_option(parts["mechanisms"], "score"):
        raise ValueError(
            f"{name!r} combines the mechanism {parts['mechanisms']} with the score {parts['score']}; "
            "this mechanism brings its own score, so name one of the two"
        )
    if "scope" in parts and (needed := registry.list_required(parts["scope"], "scope")):
        raise ValueError(
            f"{name!r} names the scope {parts['scope']}, which needs {', '.join(needed)} and so cannot be a word alone; "
            "build it in Python (padding is heeded without being named)"
        )
    return parts


def select_coverage(name: str) -> str:
    """Name of an attention with a coverage vector: that of `coverage` for the additive ones, which it extends.

    See, Liu and Manning 2017, eq. 11, https://arxiv.org/abs/1704.04368
    """
    first, *others = name.split("+")
    if first in ("additive", "bahdanau", "pointer"):
        return "+".join(("coverage", *others))
    if first in ("coverage", "fertility", "gated_coverage"):
        return name
    raise ValueError(
        f"model.coverage=true adds a coverage vector to an additive score, and model.attention is {name}; choose additive, "
        "fertility or gated_coverage"
    )


def accepts_option(name: str, option: str) -> bool:
    """Return True if a mechanism's constructor takes an option."""
    return option in inspect.signature(registry.find(name, "mechanisms")).parameters


def intersect_scopes(left: Any, right: Any) -> Scope:
    """Intersection of two scopes; a single one is returned unchanged, so that kernels recognise it."""
    scopes: list[Scope] = [registry.build(part, "scope") for part in (left, right)]
    limiting = [part for part in scopes if not isinstance(part, Everywhere)]
    return limiting[0] & limiting[1] if len(limiting) == 2 else (limiting or scopes)[0]


def build_mechanism(name: str, query: int, key: int, heads: int, options: dict[str, Any]) -> Attention:
    """Build a mechanism, multi-head where its constructor takes `heads`."""
    mechanism: Callable[..., Attention] = registry.find(name, "mechanisms")
    parameters = inspect.signature(mechanism).parameters.values()
    if "bias" in options and all(
        parameter.name != "bias" and parameter.kind != parameter.VAR_KEYWORD for parameter in parameters
    ):
        raise ValueError(f"attention {name!r} has biases, and none were asked for; choose another, or leave bias as it is")
    if not accepts_option(name, "heads"):
        return mechanism(query, key, **options)
    size = options["size"] or query
    if heads < 1 or size % heads:
        raise ValueError(
            f"attention {name!r} needs a size that its heads divide, got size {size} and {heads} heads; "
            "choose a number of heads that divides the size"
        )
    return mechanism(query, key, heads=heads, **options)
