"""Results of a comparison: every training with its metrics, and the metrics as columns."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from regard.metrics.text import LOWER_IS_BETTER as TEXT_ERRORS

State = Literal["done", "failed", "impossible", "waiting"]
"""Impossible: its model cannot be built. Waiting: not trained yet, or stopped before its end."""

ERRORS = "aer mse mae mase smape pinball crps sql l1 mcd skipped repeated misread error gap gap_starts gap_sampled length"
LOWER_IS_BETTER = frozenset({*TEXT_ERRORS, *ERRORS.split()})
"""Metrics of which lower is better; of all others, higher is."""
COSTS = ("parameters", "seconds", "tokens_per_second")
"""Costs of a training, which are not ranked."""


class Outcome(NamedTuple):
    """One training and its metrics, or the `reason` why it has none."""

    values: tuple[str, ...]
    seed: int
    folder: str
    state: State
    reason: str | None = None
    figures: dict[str, Any] = {}  # noqa: RUF012  never changed


class Column(NamedTuple):
    """A metric: its data set (valid, test; "" for costs), and its name."""

    part: str
    name: str

    @property
    def cost(self) -> bool:
        """True for a cost."""
        return not self.part

    def of(self, outcome: Outcome) -> float | None:
        """Value of the metric in one training."""
        entry = outcome.figures.get(self.part, {}).get(self.name, {}) if self.part else outcome.figures.get(self.name)
        value = entry.get("value") if isinstance(entry, dict) else entry
        return None if value is None else float(value)

    def interval(self, outcome: Outcome) -> tuple[float, float] | None:
        """The 95 % bootstrap interval of the metric of one training; None without one."""
        entry = outcome.figures.get(self.part, {}).get(self.name, {}) if self.part else {}
        low, high = entry.get("low"), entry.get("high")
        return None if low is None or high is None else (float(low), float(high))


def has_two_parts(columns: Sequence[Column]) -> bool:
    """True for metrics of two data sets, whose names then include the data set."""
    return len({column.part for column in columns if column.part}) > 1


class Comparison(NamedTuple):
    """A task, its varied settings, and every training."""

    task: str
    settings: tuple[str, ...]
    seeds: int
    outcomes: Sequence[Outcome]
    jobs: int = 1
    beam: int | None = None

    def columns(self) -> list[Column]:
        """All metrics of the trainings, the test set first, costs last."""
        parts = [(part, outcome.figures.get(part) or {}) for part in ("test", "valid") for outcome in self.outcomes]
        named = [Column(part, name) for part, table in parts for name, entry in table.items() if not isinstance(entry, list)]
        costs = [Column("", name) for name in COSTS if any(name in outcome.figures for outcome in self.outcomes)]
        return list(dict.fromkeys([*named, *costs]))

    def combinations(self) -> dict[tuple[str, ...], list[Outcome]]:
        """The trainings of each combination of values, one for each seed."""
        entry: dict[tuple[str, ...], list[Outcome]] = {}
        for outcome in self.outcomes:
            entry.setdefault(outcome.values, []).append(outcome)
        return entry

    def plain(self) -> dict[str, Any]:
        """The comparison as a dictionary, for JSON."""
        runs = [
            outcome._asdict() | {"values": dict(zip(self.settings, outcome.values, strict=True))}
            for outcome in self.outcomes
        ]
        return {"task": self.task, "settings": self.settings, "seeds": self.seeds, "beam": self.beam, "runs": runs}
