"""Kind of a component: score, normaliser, scope or mechanism, told by what a class has."""

import inspect
from typing import Any, NamedTuple

from regard.attention.module import Attention
from regard.attention.scope import Scope
from regard.errors import ConfigError

PREPARE = "the key's side of the score, computed once per source; add `def prepare(self, key): return key`"
SUMS = "True where the weights of a query add up to one; add `sums_to_one = True` or False to the class"


class Kind(NamedTuple):
    """Kind of a class as the registry calls it, and what the class lacks to be of that kind, in one sentence."""

    name: str
    lacks: str | None = None


def classify(component: type[Any], name: str | None = None) -> Kind:
    """The kind of a class. A `name` says which is meant; raises where the class is none of the four."""
    kind = name or _guess(component)
    title = component.__name__
    if kind is None:
        raise ConfigError(
            f"{title} is no score, normaliser, scope or mechanism: a score has prepare(key) and is called with (query, "
            "prepared), a normaliser has sums_to_one and is called with (scores, allowed), a scope derives from "
            "regard.attention.scope.Scope, a mechanism from regard.attention.Attention"
        )
    base = {"scope": Scope, "mechanisms": Attention}.get(kind)
    if base is not None and not issubclass(component, base):
        return Kind(kind, f"{title} does not derive from {base.__module__}.{base.__name__}; make that its base class")
    if kind == "score" and not callable(getattr(component, "prepare", None)):
        return Kind(kind, f"{title} has no prepare(key): {PREPARE}")
    if kind == "normalise" and not hasattr(component, "sums_to_one"):
        return Kind(kind, f"{title} has no sums_to_one: {SUMS}")
    if kind in ("score", "normalise") and not _parameters(component):
        arguments = "(query, prepared)" if kind == "score" else "(scores, allowed)"
        return Kind(kind, f"{title} cannot be called with {arguments}; add `forward`, or `__call__` where it is no module")
    return Kind(kind)


def require_kind(component: type[Any], name: str | None = None) -> str:
    """The kind of a class that has all that the kind needs."""
    kind = classify(component, name)
    if kind.lacks is not None:
        raise ConfigError(kind.lacks)
    return kind.name


def is_builtin(component: Any) -> bool:
    """True if an object is of a class of regard's own, of which an engine may assume how it works."""
    return type(component).__module__.partition(".")[0] == "regard"


def _guess(component: type[Any]) -> str | None:
    """Kind by base class, by attribute, or else by the names of the arguments of a call."""
    for base, kind in ((Scope, "scope"), (Attention, "mechanisms")):
        if issubclass(component, base):
            return kind
    for mark, kind in (("sums_to_one", "normalise"), ("prepare", "score")):
        if hasattr(component, mark):
            return kind
    names = _parameters(component)
    if names[:4] == ["b", "h", "q", "k"]:
        return "scope"
    if names[:1] in (["query"], ["q"], ["queries"]) and len(names) > 1:
        return "score"
    return "normalise" if names[:1] in (["scores"], ["score"]) else None


def _parameters(component: type[Any]) -> list[str]:
    """Names of the arguments of a call, without self; none where there is nothing to call."""
    own = [vars(base) for base in component.__mro__ if base is not object and base.__module__ != "torch.nn.modules.module"]
    call = next((members[name] for members in own for name in ("forward", "__call__") if name in members), None)
    return list(inspect.signature(call).parameters)[1:] if inspect.isfunction(call) else []
