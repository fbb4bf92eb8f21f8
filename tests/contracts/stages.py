"""Every score, normaliser and scope there is, and every way to combine them.

A file in a stage's folder is here by being there. What the defaults leave out is in `regard.testing.cases` by name.
"""

import inspect
from collections.abc import Callable
from functools import partial
from itertools import combinations, product
from typing import Any

import pytest
import torch

from regard.testing.cases import Case, list_stages

STAGES = list_stages()
SCORES, NORMALISERS, SCOPES = STAGES
REFUSED = {("distance", "sum_to_one")}
"""Scores and normalisers that make no sense together."""

PAIRS = [pair for pair in product(SCORES, NORMALISERS) if pair not in REFUSED]
CASES = [Case(*pair, scope) for pair in PAIRS for scope in SCOPES]


def _pairwise() -> list[Case]:
    """Few cases in which every two stages still meet: those along the diagonals, and others where two have not met yet."""
    place = {name: index for names in (SCORES, NORMALISERS, SCOPES) for index, name in enumerate(names)}
    met: set[tuple[str, str]] = set()
    chosen = []
    for case in sorted(CASES, key=lambda case: sum(place[name] for name in case.names) % len(NORMALISERS)):
        if not met.issuperset(combinations(case.names, 2)):
            met.update(combinations(case.names, 2))
            chosen.append(case)
    return chosen


TWO = _pairwise()
"""Cases in which every two stages meet."""

ONCE = STAGES.diagonal()
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
