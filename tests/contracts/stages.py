"""Every score, normaliser and scope there is, and every way to combine them, in sizes small enough to test them all.

A file in a stage's folder is here by being there. What the defaults leave out is added below by name.
"""

import inspect
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard import registry
from regard.attention import Causal, Concat, Entmax, Local, Prefix, Relative, Shaw, attend
from regard.attention.scope import Scope

BATCH, HEADS, QUERIES, KEYS = 2, 2, 3, 4
QUERY, KEY, VALUE = 2, 3, 2  # the sizes of the vectors


def _folder(kind: str) -> dict[str, type[Any]]:
    return dict(zip(registry.names(kind), registry.every(kind), strict=True))


SCORES: dict[str, Callable[..., Any]] = _folder("score") | {
    "concat_without_tanh": partial(Concat, tanh=False),
    "relative": partial(Relative, window=2),  # which a few keys reach, and are beyond
    "shaw": partial(Shaw, window=2),
}
NORMALISERS: dict[str, Callable[..., Any]] = _folder("normalise") | {
    "entmax_at_1.3": partial(Entmax, 1.3),
    "entmax_that_learns": partial(Entmax, 1.4, learn=True),
}
SCOPES: dict[str, Callable[[int, int], Scope]] = {
    **{name: scope.sample for name, scope in _folder("scope").items()},
    "prefix_of_each_row": lambda batch, keys: Prefix(1 + torch.arange(batch) % keys),
    "causal_and_local": lambda batch, keys: Causal() & Local(1),
    "causal_or_prefix": lambda batch, keys: Causal() | Prefix(2),
    "not_causal": lambda batch, keys: ~Causal(),
}
REFUSED = {("distance", "sum_to_one")}
"""Scores and normalisers that make no sense together."""


@dataclass(frozen=True)
class Case:
    """One score, one normaliser and one scope, by name: built afresh for each test, in double precision."""

    score: str = "scaled_dot"
    normalise: str = "softmax"
    scope: str = "everywhere"

    def __str__(self) -> str:
        return f"{self.score}-{self.normalise}-{self.scope}"

    def build(self, heads: int = HEADS, batch: int = BATCH, keys: int = KEYS) -> dict[str, Any]:
        """The three stages, under the names that attend() has for them."""
        return {
            "score": _build(SCORES[self.score], query=QUERY, key=KEY, value=VALUE, heads=heads),
            "normalise": _build(NORMALISERS[self.normalise], heads=heads),
            "scope": SCOPES[self.scope](batch, keys),
        }

    def inputs(
        self, heads: int = HEADS, key_heads: int | None = None, batch: int = BATCH, queries: int = QUERIES, keys: int = KEYS
    ) -> tuple[Tensor, Tensor, Tensor]:
        """A query, a key and a value. The first two differ in size where the score is built for both."""
        key_heads = heads if key_heads is None else key_heads
        query = QUERY if "query" in inspect.signature(SCORES[self.score]).parameters else KEY
        return (
            torch.randn(batch, heads, queries, query, dtype=torch.float64),
            torch.randn(batch, key_heads, keys, KEY, dtype=torch.float64),
            torch.randn(batch, key_heads, keys, VALUE, dtype=torch.float64),
        )


class Attend(nn.Module):
    """attend() with its stages inside, for what wants a module: a context and, if asked, the weights."""

    def __init__(self, score: Any, normalise: Any, scope: Any):
        super().__init__()
        self.score, self.normalise, self.scope = score, normalise, scope

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        stages = {"score": self.score, "normalise": self.normalise, "scope": self.scope}
        attended = attend(query, key, value, **stages, **options)
        return attended.context, attended.weights


def _build(stage: Callable[..., Any], **sizes: int) -> Any:
    wanted = inspect.signature(stage).parameters
    built = stage(**{size: value for size, value in sizes.items() if size in wanted})
    return built.double().eval() if isinstance(built, nn.Module) else built  # what draws at random then does not


@dataclass(frozen=True)
class Elsewhere(Scope):
    """A scope whose tensors were made for one batch, looked at from another: its rows from `row` on, its first `keys`."""

    inner: Scope
    row: int
    keys: int

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.inner(b + self.row, h, q, k.clamp_max(self.keys - 1))


def moved(scope: Scope, batch: int = BATCH, keys: int = KEYS, row: int = 0) -> Scope:
    """`scope`, made for BATCH and KEYS, for a batch of other sizes. Most scopes fit all."""
    try:
        scope.check(batch, HEADS, QUERIES, keys)
    except ValueError:
        return Elsewhere(scope, row, KEYS)
    return scope


PAIRS = [pair for pair in product(SCORES, NORMALISERS) if pair not in REFUSED]
CASES = [Case(*pair, scope) for pair in PAIRS for scope in SCOPES]


def _pairwise() -> list[Case]:
    """Few cases in which every two stages still meet: those along the diagonals, and others where two have not met yet."""
    place = {name: index for names in (SCORES, NORMALISERS, SCOPES) for index, name in enumerate(names)}
    met: set[tuple[str, str]] = set()
    chosen = []
    for case in sorted(CASES, key=lambda case: sum(place[name] for name in astuple(case)) % len(NORMALISERS)):
        if not met.issuperset(combinations(astuple(case), 2)):
            met.update(combinations(astuple(case), 2))
            chosen.append(case)
    return chosen


TWO = _pairwise()
"""Cases in which every two stages meet."""

KINDS = list(SCORES), list(NORMALISERS), list(SCOPES)
ONCE = [Case(*(names[place % len(names)] for names in KINDS)) for place in range(max(map(len, KINDS)))]
"""Cases in which every stage is there: one diagonal."""


def _by_score(test: Callable[..., None], groups: list[Any]) -> Callable[..., None]:
    """One test for each score, which goes through its cases itself: thousands of tests cost minutes to collect and to hand
    out."""

    def each(cases: list[Case], **options: Any) -> None:
        for case in cases:
            torch.manual_seed(0)
            try:
                test(case, **options)
            except BaseException as error:
                error.add_note(f"in the case {case}")
                raise

    each.__name__, each.__doc__ = test.__name__, test.__doc__
    others = [each for each in inspect.signature(test).parameters.values() if each.name != "case"]
    cases = inspect.Parameter("cases", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    each.__signature__ = inspect.Signature([cases, *others])  # type: ignore[attr-defined]
    each.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
    return pytest.mark.parametrize("cases", groups)(each)


def _group(cases: list[Case], text: str, *marks: Any) -> list[Any]:
    scores = dict.fromkeys(case.score for case in cases)
    return [
        pytest.param([case for case in cases if case.score == score], id=f"{score}{text}", marks=marks) for score in scores
    ]


def _often(few: list[Case]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    often = frozenset(few)
    rest = [case for case in CASES if case not in often]
    long = pytest.mark.soak, pytest.mark.timeout(3600)  # a score with all normalisers in all scopes
    return partial(_by_score, groups=_group(few, "") + _group(rest, ", all", *long))


def soaked(case: Any) -> Any:
    """A case for the soak alone."""
    return pytest.param(case, id=str(case), marks=pytest.mark.soak)


every_two = _often(TWO)
"""The test for a few cases in which every two stages meet; all others are for the soak."""

every_stage = _often(ONCE)
"""The test for a few cases in which every stage is there, for what takes long; all others are for the soak."""

every_case = _often([])
"""The test for all cases, in the soak."""
