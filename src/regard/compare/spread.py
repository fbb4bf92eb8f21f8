"""Spread over seeds: mean and standard deviation of a metric, and differences within it."""

import math
import statistics
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeVar

Mark = Literal["best", "near"]
Key = TypeVar("Key")


class Spread(NamedTuple):
    """Values of a metric of one combination, one for each seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Σ x / n."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """√(Σ (x - mean)² / (n - 1)): None for one training."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        deviation = self.deviation
        if deviation is None:
            return format_number(self.mean)
        places = 0 if self.mean >= 1000 else decimals(deviation or abs(self.mean) / 1000)
        return f"{self.mean:,.{places}f} ± {deviation:,.{places}f}"


def is_indistinguishable(best: Spread, other: Spread) -> bool:
    """True where the difference of two combinations is within one standard deviation.

        |mean₁ - mean₂| <= √(s₁² + s₂²)

    The right-hand side is the standard deviation of the difference between a training of one and a training of the other.
    """
    room = math.hypot(best.deviation or 0.0, other.deviation or 0.0)
    return abs(best.mean - other.mean) <= room


def mark_best(spreads: Mapping[Key, Spread], less: bool) -> dict[Key, Mark]:
    """Mark the best mean, with all that tie for it, and all that are indistinguishable from it."""
    if not spreads:
        return {}
    first = (min if less else max)(spreads, key=lambda key: spreads[key].mean)
    marks: dict[Key, Mark] = {key: "near" for key, spread in spreads.items() if is_indistinguishable(spreads[first], spread)}
    return marks | {key: "best" for key, spread in spreads.items() if spread.mean == spreads[first].mean}


def format_number(value: float) -> str:
    """Format a number: 12,345, 31.2 or 1.20."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:#.3g}"


def decimals(deviation: float) -> int:
    """Decimal places that show two digits of a deviation."""
    return 0 if deviation <= 0 else min(4, max(0, 1 - math.floor(math.log10(deviation))))
