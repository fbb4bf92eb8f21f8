"""The comparison as a table of text: compare.md, and what the command prints."""

from collections.abc import Sequence

from regard.compare.outcome import LESS, Column, Comparison, Outcome, two
from regard.compare.spread import Mark, Spread, marks, said

SIGNS: dict[Mark | None, str] = {"best": " *", "near": " ~", None: ""}
WORDS = {"failed": "failed", "impossible": "cannot be built", "waiting": "not trained yet"}
LABELS = {"tokens_per_second": "tokens/s"}


def tabulate(comparison: Comparison) -> str:
    """A row for each combination: the mean of every figure and its spread over the seeds, and below it what that means."""
    columns, rows = comparison.columns(), comparison.combinations()
    cells = {column: spreads(column, rows) for column in columns}
    marked = {column: {} if column.cost else marks(cells[column], column.name in LESS) for column in columns}
    lines = [[*comparison.settings, "n", *(label(column, columns) for column in columns)]]
    for values, outcomes in rows.items():
        done = [each for each in outcomes if each.state == "done"]
        found = (
            f"{told(column, cells[column][values])}{SIGNS[marked[column].get(values)]}" if values in cells[column] else "-"
            for column in columns
        )
        lines.append([*values, str(len(done)) if done else WORDS[outcomes[0].state], *found])
    return "\n\n".join(["\n".join(_aligned(lines)), *notes(comparison)])


def spreads(column: Column, rows: dict[tuple[str, ...], list[Outcome]]) -> dict[tuple[str, ...], Spread]:
    """The numbers of one figure in each combination that has any."""
    found = {
        values: tuple(x for each in outcomes if (x := column.of(each)) is not None) for values, outcomes in rows.items()
    }
    return {values: Spread(numbers) for values, numbers in found.items() if numbers}


def label(column: Column, columns: Sequence[Column]) -> str:
    """A figure's name, and of which records where there are two sets of them."""
    name = LABELS.get(column.name, column.name)
    return f"{column.part} {name}" if two(columns) and column.part else name


def told(column: Column, spread: Spread) -> str:
    """A figure and its spread; how many parameters there are is no matter of chance."""
    return said(spread.mean) if column.name == "parameters" else str(spread)


def notes(comparison: Comparison) -> list[str]:
    """What the signs mean, and the reason of everything that did not train."""
    if comparison.seeds > 1:
        spread = (
            "± is the standard deviation over the n seeds. * marks the best mean, ~ what differs from it by no more than "
            "√(s₁² + s₂²), the standard deviation of a difference between two trainings: these seeds do not tell them apart."
        )
    else:
        spread = (
            "* marks the best, ~ what equals it. Each was trained once, so what a seed changes is not known: --seeds 3 "
            "shows it."
        )
    lost = [each for each in comparison.outcomes if each.state in ("failed", "impossible")]
    reasons = dict.fromkeys(f"- {named(each)}: {each.reason}" for each in lost)
    return [spread, *(["\n".join(reasons)] if reasons else [])]


def named(outcome: Outcome) -> str:
    """A training by its values, and by its seed where that one alone failed."""
    values = " · ".join(outcome.values)
    return f"{values} cannot be built" if outcome.state == "impossible" else f"{values}, seed {outcome.seed} failed"


def _aligned(rows: list[list[str]]) -> list[str]:
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
