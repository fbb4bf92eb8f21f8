"""Cases of the stage contracts: one score, one normaliser and one scope, in sizes small enough to test every combination."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard import registry
from regard.attention import attend
from regard.attention.normalise.entmax import Entmax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.local import Local
from regard.attention.scope.prefix import Prefix
from regard.attention.score.concat import Concat
from regard.attention.score.relative import Relative
from regard.attention.score.shaw import Shaw

BATCH, HEADS, QUERIES, KEYS = 2, 2, 3, 4
QUERY, KEY, VALUE = 2, 3, 2  # the sizes of the vectors

Factory = Callable[..., Any]
ScopeFactory = Callable[[int, int], Scope]
"""Factory of a scope from the sizes of a batch and the number of keys."""


class Stages(NamedTuple):
    """Factories of scores, normalisers and scopes by name."""

    scores: dict[str, Factory]
    normalisers: dict[str, Factory]
    scopes: dict[str, ScopeFactory]

    def add(self, kind: str, name: str, component: Any) -> "Stages":
        """Stages with one more: a class of this kind."""
        if kind == "score":
            return self._replace(scores=self.scores | {name: component})
        if kind == "normalise":
            return self._replace(normalisers=self.normalisers | {name: component})
        return self._replace(scopes=self.scopes | {name: component.sample})

    def all_cases(self) -> list["Case"]:
        """Every combination."""
        return [Case(*names, self) for names in product(self.scores, self.normalisers, self.scopes)]

    def diagonal(self, **chosen: str) -> list["Case"]:
        """A few cases in which every stage occurs; of a kind that is chosen (score="additive") only that one does."""
        kinds = {"score": self.scores, "normalise": self.normalisers, "scope": self.scopes}
        names = [[chosen[kind]] if kind in chosen else list(table) for kind, table in kinds.items()]
        count = max(map(len, names))
        rows = [[kind[index % len(kind)] for kind in names] for index in range(count)]
        return [Case(score, normalise, scope, self) for score, normalise, scope in rows]


@cache
def list_stages() -> Stages:
    """Every stage of the folders, and what their defaults leave out."""
    scores: dict[str, Factory] = _list_folder("score") | {
        "concat_without_tanh": partial(Concat, tanh=False),
        "relative": partial(Relative, window=2),  # a window that a few keys reach, and are beyond
        "shaw": partial(Shaw, window=2),
    }
    normalisers: dict[str, Factory] = _list_folder("normalise") | {
        "entmax_at_1.3": partial(Entmax, 1.3),
        "entmax_that_learns": partial(Entmax, 1.4, learn=True),
    }
    scopes: dict[str, ScopeFactory] = {
        **{name: scope.sample for name, scope in _list_folder("scope").items()},
        "prefix_of_each_row": lambda batch, keys: Prefix(1 + torch.arange(batch) % keys),
        "causal_and_local": lambda batch, keys: Causal() & Local(1),
        "causal_or_prefix": lambda batch, keys: Causal() | Prefix(2),
        "not_causal": lambda batch, keys: ~Causal(),
    }
    return Stages(scores, normalisers, scopes)


def _list_folder(kind: str) -> dict[str, Any]:
    return dict(zip(registry.names(kind), registry.every(kind), strict=True))


@dataclass(frozen=True)
class Case:
    """One score, one normaliser and one scope, by name: built afresh for each contract, in double precision."""

    score: str = "scaled_dot"
    normalise: str = "softmax"
    scope: str = "everywhere"
    stages: Stages = field(default_factory=list_stages, compare=False, repr=False)

    def __str__(self) -> str:
        return "-".join(self.names)

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the three stages."""
        return self.score, self.normalise, self.scope

    @property
    def score_factory(self) -> Factory:
        """Factory of the score."""
        return self.stages.scores[self.score]

    def build(self, heads: int = HEADS, batch: int = BATCH, keys: int = KEYS) -> dict[str, Any]:
        """The three stages, under the names that attend() has for them."""
        return {
            "score": build_stage(self.score_factory, query=QUERY, key=KEY, value=VALUE, heads=heads),
            "normalise": build_stage(self.stages.normalisers[self.normalise], heads=heads),
            "scope": self.stages.scopes[self.scope](batch, keys),
        }

    def inputs(self, heads: int = HEADS, key_heads: int | None = None, **lengths: int) -> tuple[Tensor, Tensor, Tensor]:
        """A query, a key and a value. The first two differ in size where the score is built for both."""
        return make_inputs(self.score_factory, heads, key_heads, **lengths)


def build_stage(factory: Factory, **sizes: int) -> Any:
    """A stage built with those sizes that its constructor takes, in double precision and without random draws."""
    parameters = inspect.signature(factory).parameters
    built = factory(**{size: value for size, value in sizes.items() if size in parameters})
    return built.double().eval() if isinstance(built, nn.Module) else built


def make_inputs(
    score: Factory,
    heads: int = HEADS,
    key_heads: int | None = None,
    batch: int = BATCH,
    queries: int = QUERIES,
    keys: int = KEYS,
) -> tuple[Tensor, Tensor, Tensor]:
    """Random query, key and value for a score that a factory builds."""
    key_heads = heads if key_heads is None else key_heads
    query = QUERY if "query" in inspect.signature(score).parameters else KEY
    return (
        torch.randn(batch, heads, queries, query, dtype=torch.float64),
        torch.randn(batch, key_heads, keys, KEY, dtype=torch.float64),
        torch.randn(batch, key_heads, keys, VALUE, dtype=torch.float64),
    )


class Attend(nn.Module):
    """attend() with its stages inside, for what needs a module: a context and, on request, the weights."""

    def __init__(self, score: Any, normalise: Any, scope: Any):
        super().__init__()
        self.score, self.normalise, self.scope = score, normalise, scope

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        stages = {"score": self.score, "normalise": self.normalise, "scope": self.scope}
        attended = attend(query, key, value, **stages, **options)
        return attended.context, attended.weights


@dataclass(frozen=True)
class Shifted(Scope):
    """A scope whose tensors were made for one batch, applied to another: its rows from `row` on, its first `keys`."""

    inner: Scope
    row: int
    keys: int

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.inner(b + self.row, h, q, k.clamp_max(self.keys - 1))


def move_scope(scope: Scope, batch: int = BATCH, keys: int = KEYS, row: int = 0) -> Scope:
    """`scope`, made for BATCH and KEYS, for a batch of other sizes. Most scopes fit all."""
    try:
        scope.check(batch, HEADS, QUERIES, keys)
    except ValueError:
        return Shifted(scope, row, KEYS)
    return scope


def is_refused(case: Case) -> bool:
    """True if attend() refuses this combination of stages."""
    try:
        attend(*case.inputs(), **case.build())
    except ValueError as error:
        return "make no sense together" in str(error)
    except Exception:  # a defect, for a contract to report
        return False
    return False


def drop_refused(cases: Iterable[Case]) -> list[Case]:
    """The cases whose stages make sense together."""
    return [case for case in cases if not is_refused(case)]
