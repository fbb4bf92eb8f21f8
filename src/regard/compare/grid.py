"""The page's tables: a row for each combination, a group of columns for each value of the last setting; every training."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from regard.compare.dot_plot import Scale, scale, strip
from regard.compare.outcome import LOWER_IS_BETTER, Column, Comparison, Outcome, has_two_parts
from regard.compare.spread import Mark, Spread, format_number, mark_best
from regard.compare.strings import STATES, both, figure
from regard.compare.table import format_cell, spreads

SIGNS: dict[Mark, str] = {"best": "★", "near": "≈"}
Values = tuple[str, ...]


class Grid(NamedTuple):
    """Layout of a comparison: rows, groups of columns, and cells."""

    comparison: Comparison
    columns: Sequence[Column]
    cells: dict[Values, list[Outcome]]
    spreads: dict[Column, dict[Values, Spread]]
    marks: dict[Column, dict[Values, Mark]]
    scales: dict[Column, Scale]
    rows: list[Values]
    groups: list[Values]


def lay(comparison: Comparison) -> Grid:
    """Lay out a comparison: with several settings, the values of the last are groups of columns with a best each."""
    columns, cells = comparison.columns(), comparison.combinations()
    across = len(comparison.settings) > 1
    rows = list(dict.fromkeys(values[:-1] if across else values for values in cells))
    groups = list(dict.fromkeys(values[-1:] if across else () for values in cells))
    numbers = {column: spreads(column, cells) for column in columns}
    marked = {column: {} if column.cost else _marks(numbers[column], column, groups) for column in columns}
    scales = {column: scale(column, comparison.outcomes, comparison.seeds) for column in columns}
    return Grid(comparison, columns, cells, numbers, marked, scales, rows, groups)


def table(grid: Grid) -> str:
    """The table of all combinations."""
    settings = grid.comparison.settings
    named = settings[:-1] if len(settings) > 1 else settings
    corner = "".join(
        f'<th class="name" rowspan="2">{sorter(escape(setting), f"r{place}")}</th>' for place, setting in enumerate(named)
    )
    over = "".join(f'<th data-span colspan="{len(grid.columns)}">{_group(grid, group)}</th>' for group in grid.groups)
    under = "".join(
        _heading(grid, number, place) for number in range(len(grid.groups)) for place in range(len(grid.columns))
    )
    head = f"<thead><tr>{corner}{over}</tr><tr>{under}</tr></thead>"
    return f'<table id="grid">{head}<tbody>{"".join(_row(grid, row) for row in grid.rows)}</tbody></table>'


def trainings(grid: Grid) -> str:
    """Table of all trainings, with the 95 % bootstrap interval of each metric."""
    parts = has_two_parts(grid.columns)
    names = [*map(escape, grid.comparison.settings), both("seed", "种子"), both("state", "状态"), both("folder", "目录")]
    names += [both(*figure(column, parts)) for column in grid.columns]
    rows = "".join(_training(grid, outcome) for outcome in grid.comparison.outcomes)
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def sorter(label: str, key: str, less: bool = True) -> str:
    """A heading whose button sorts by its column, the best first."""
    return f'<button type="button" data-sort="{key}" data-less="{int(less)}">{label}</button>'


def _marks(numbers: dict[Values, Spread], column: Column, groups: list[Values]) -> dict[Values, Mark]:
    marks: dict[Values, Mark] = {}
    for group in groups:
        mine = {values: number for values, number in numbers.items() if not group or values[-1:] == group}
        marks |= mark_best(mine, column.name in LOWER_IS_BETTER)
    return marks


def _group(grid: Grid, group: Values) -> str:
    return f"{escape(grid.comparison.settings[-1])} = {escape(group[0])}" if group else both("figures", "指标")


def _heading(grid: Grid, number: int, place: int) -> str:
    column = grid.columns[place]
    less = column.name in LOWER_IS_BETTER or column.name in ("parameters", "seconds")
    edge = " edge" if place == 0 else ""
    name = both(*figure(column, has_two_parts(grid.columns)))
    return f'<th class="c{place}{edge}">{sorter(name, f"{number}-{place}", less)}</th>'


def _row(grid: Grid, row: Values) -> str:
    names = "".join(
        f'<th class="name" scope="row" data-key="r{place}" data-text="{escape(value)}">{escape(value)}</th>'
        for place, value in enumerate(row)
    )
    return f"<tr>{names}{''.join(_cells(grid, row + group, number) for number, group in enumerate(grid.groups))}</tr>"


def _cells(grid: Grid, values: Values, number: int) -> str:
    """One group of a row: its metrics, or its state."""
    outcomes = grid.cells[values]
    if not any(outcome.state == "done" for outcome in outcomes):
        reason = escape(outcomes[0].reason or "")
        state = both(*STATES[outcomes[0].state])
        return f'<td class="{outcomes[0].state} edge" data-span colspan="{len(grid.columns)}" title="{reason}">{state}</td>'
    return "".join(_cell(grid, values, number, place) for place in range(len(grid.columns)))


def _cell(grid: Grid, values: Values, number: int, place: int) -> str:
    column, key = grid.columns[place], f'data-key="{number}-{place}"'
    spread, mark = grid.spreads[column].get(values), grid.marks[column].get(values)
    classes = f"c{place}" + (" edge" if place == 0 else "") + (f" {mark}" if mark else "")
    if spread is None:
        return f'<td class="{classes}" {key}>–</td>'
    sign = f'<b class="sign">{SIGNS[mark]}</b>' if mark else ""
    plot = "" if column.cost else strip(column, grid.cells[values], grid.scales[column])
    missing = grid.comparison.seeds - len(spread.values)
    fewer = f"<small>n = {len(spread.values)}</small>" if missing and not column.cost else ""
    shown = f"<span>{format_cell(column, spread)}{sign}</span>"
    return f'<td class="{classes}" {key} data-value="{spread.mean!r}">{shown}{plot}{fewer}</td>'


def _training(grid: Grid, outcome: Outcome) -> str:
    about = [*outcome.values, str(outcome.seed)]
    cells = [*map(escape, about), both(*STATES[outcome.state]), escape(outcome.folder)]
    for column in grid.columns:
        value, interval = column.of(outcome), column.interval(outcome)
        between = f" <small>[{format_number(interval[0])}, {format_number(interval[1])}]</small>" if interval else ""
        cells.append("–" if value is None else format_number(value) + between)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
