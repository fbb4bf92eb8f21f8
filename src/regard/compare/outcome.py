"""What became of a comparison: every training with its figures, and the figures as columns."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

State = Literal["done", "failed", "impossible", "waiting"]
"""Impossible: no network can be made of it. Waiting: not trained yet, or stopped on the way."""

LESS = frozenset({"loss", "perplexity", "wer", "cer", "per", "aer", "text_rank", "picture_rank"})
"""Figures of which less is better; of all others that a task measures, more is."""
COSTS = ("parameters", "seconds", "tokens_per_second")
"""Figures of a training that are neither good nor bad in themselves."""


class Outcome(NamedTuple):
    """One training and what came of it; `reason` says why nothing did."""

    values: tuple[str, ...]
    seed: int
    folder: str
    state: State
    reason: str | None = None
    figures: dict[str, Any] = {}  # noqa: RUF012  never changed


class Column(NamedTuple):
    """A figure: of which set of records (valid, test; "" for costs), and its name."""

    part: str
    name: str

    @property
    def cost(self) -> bool:
        """Whether it tells what a training took, and not how good it was."""
        return not self.part

    def of(self, outcome: Outcome) -> float | None:
        """Its number in one training."""
        found = outcome.figures.get(self.part, {}).get(self.name, {}) if self.part else outcome.figures.get(self.name)
        value = found.get("value") if isinstance(found, dict) else found
        return None if value is None else float(value)

    def interval(self, outcome: Outcome) -> tuple[float, float] | None:
        """The 95 % interval over sentences in which the number of one training lies, where it has one."""
        found = outcome.figures.get(self.part, {}).get(self.name, {}) if self.part else {}
        low, high = found.get("low"), found.get("high")
        return None if low is None or high is None else (float(low), float(high))


def two(columns: Sequence[Column]) -> bool:
    """Whether figures are of two sets of records, and so have to say of which."""
    return len({column.part for column in columns if column.part}) > 1


class Comparison(NamedTuple):
    """A task, the settings that vary, and every training of it."""

    task: str
    settings: tuple[str, ...]
    seeds: int
    outcomes: Sequence[Outcome]
    jobs: int = 1
    beam: int | None = None

    def columns(self) -> list[Column]:
        """The figures that any training has, the test set's first, costs last."""
        parts = [(part, each.figures.get(part) or {}) for part in ("test", "valid") for each in self.outcomes]
        named = [Column(part, name) for part, table in parts for name, found in table.items() if not isinstance(found, list)]
        costs = [Column("", name) for name in COSTS if any(name in each.figures for each in self.outcomes)]
        return list(dict.fromkeys([*named, *costs]))

    def combinations(self) -> dict[tuple[str, ...], list[Outcome]]:
        """The trainings of each combination of values, one for each seed."""
        found: dict[tuple[str, ...], list[Outcome]] = {}
        for each in self.outcomes:
            found.setdefault(each.values, []).append(each)
        return found

    def plain(self) -> dict[str, Any]:
        """All of it as a table, for JSON."""
        runs = [each._asdict() | {"values": dict(zip(self.settings, each.values, strict=True))} for each in self.outcomes]
        return {"task": self.task, "settings": self.settings, "seeds": self.seeds, "beam": self.beam, "runs": runs}
