"""How far apart trainings lie that differ in nothing but their seed, and what that leaves of a difference."""

import math
import statistics
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeVar

Mark = Literal["best", "near"]
Key = TypeVar("Key")


class Spread(NamedTuple):
    """The numbers of one combination, one for each seed that was trained."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Σ x / n."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """√(Σ (x - mean)² / (n - 1)): what a seed changes; unknown of one training alone."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        deviation = self.deviation
        if deviation is None:
            return said(self.mean)
        places = 0 if self.mean >= 1000 else decimals(deviation or abs(self.mean) / 1000)
        return f"{self.mean:,.{places}f} ± {deviation:,.{places}f}"


def near(best: Spread, other: Spread) -> bool:
    """Whether the seeds that were trained do not tell two combinations apart.

        |mean₁ - mean₂| <= √(s₁² + s₂²)

    The right-hand side is the standard deviation of the difference between a training of one and a training of the other.
    """
    room = math.hypot(best.deviation or 0.0, other.deviation or 0.0)
    return abs(best.mean - other.mean) <= room


def marks(spreads: Mapping[Key, Spread], less: bool) -> dict[Key, Mark]:
    """The best mean, and all that the spread does not tell from it."""
    if not spreads:
        return {}
    first = (min if less else max)(spreads, key=lambda key: spreads[key].mean)
    found: dict[Key, Mark] = {key: "near" for key, each in spreads.items() if near(spreads[first], each)}
    return found | {first: "best"}


def said(value: float) -> str:
    """A number alone: 12,345, 31.2 or 1.20."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:#.3g}"


def decimals(deviation: float) -> int:
    """As many places as show two digits of a spread."""
    return 0 if deviation <= 0 else min(4, max(0, 1 - math.floor(math.log10(deviation))))
