"""Text table of a comparison: compare.md, and the output of the command."""

from collections.abc import Sequence

from regard.compare.outcome import LOWER_IS_BETTER, Column, Comparison, Outcome, has_two_parts
from regard.compare.spread import Mark, Spread, format_number, mark_best

SIGNS: dict[Mark | None, str] = {"best": " *", "near": " ~", None: ""}
WORDS = {"failed": "failed", "impossible": "cannot be built", "waiting": "not trained yet"}
LABELS = {"tokens_per_second": "tokens/s"}


def tabulate(comparison: Comparison) -> str:
    """A row for each combination with the mean and spread of every metric, and notes below."""
    columns, rows = comparison.columns(), comparison.combinations()
    cells = {column: spreads(column, rows) for column in columns}
    marked = {column: {} if column.cost else mark_best(cells[column], column.name in LOWER_IS_BETTER) for column in columns}
    lines = [[*comparison.settings, "n", *(label(column, columns) for column in columns)]]
    for values, outcomes in rows.items():
        done = [outcome for outcome in outcomes if outcome.state == "done"]
        values_of_row = (
            f"{format_cell(column, cells[column][values])}{SIGNS[marked[column].get(values)]}"
            if values in cells[column]
            else "-"
            for column in columns
        )
        lines.append([*values, str(len(done)) if done else WORDS[outcomes[0].state], *values_of_row])
    return "\n\n".join(["\n".join(_aligned(lines)), *write_notes(comparison)])


def spreads(column: Column, rows: dict[tuple[str, ...], list[Outcome]]) -> dict[tuple[str, ...], Spread]:
    """Values of one metric in each combination that has any."""
    numbers_of = {
        values: tuple(x for outcome in outcomes if (x := column.of(outcome)) is not None)
        for values, outcomes in rows.items()
    }
    return {values: Spread(numbers) for values, numbers in numbers_of.items() if numbers}


def label(column: Column, columns: Sequence[Column]) -> str:
    """Name of a metric, with its data set where there are two."""
    name = LABELS.get(column.name, column.name)
    return f"{column.part} {name}" if has_two_parts(columns) and column.part else name


def format_cell(column: Column, spread: Spread) -> str:
    """A metric with its spread; the number of parameters has none."""
    return format_number(spread.mean) if column.name == "parameters" else str(spread)


def write_notes(comparison: Comparison) -> list[str]:
    """Legend of the signs, and the reasons of failed trainings."""
    if comparison.seeds > 1:
        spread = (
            "± is the standard deviation over the n seeds. * marks the best mean and what ties with it, ~ what differs from "
            "it by no more than √(s₁² + s₂²), the standard deviation of a difference of two trainings: these seeds do not "
            "distinguish them."
        )
    else:
        spread = (
            "* marks the best and what ties with it. Each was trained once, so what a seed changes is not known: --seeds 3 "
            "shows it."
        )
    lost = [outcome for outcome in comparison.outcomes if outcome.state in ("failed", "impossible")]
    reasons = dict.fromkeys(f"- {name_outcome(outcome)}: {outcome.reason}" for outcome in lost)
    return [spread, *(["\n".join(reasons)] if reasons else [])]


def name_outcome(outcome: Outcome) -> str:
    """Name of a failed training: its values, and its seed unless its model cannot be built."""
    values = " · ".join(outcome.values)
    return f"{values} cannot be built" if outcome.state == "impossible" else f"{values}, seed {outcome.seed} failed"


def _aligned(rows: list[list[str]]) -> list[str]:
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
