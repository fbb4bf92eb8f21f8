"""Tables of metrics in which other predictors stand beside the model: figures called NAME.METRIC are theirs."""

from collections.abc import Iterable, Mapping, Sequence

MODEL = "model"
"""Row of the model itself."""


def is_compared(name: str) -> bool:
    """True for the figure of another predictor: k_means.vus_pr."""
    return "." in name


def metrics_of_table(names: Iterable[str]) -> list[str]:
    """Metrics that other predictors have too, in their order."""
    names = list(names)
    compared = {name.partition(".")[2] for name in names if is_compared(name)}
    return [name for name in names if name in compared]


def format_table(figures: Mapping[str, float | None]) -> str:
    """Table with a row for the model and one for each other predictor, and a column for each metric."""
    columns = metrics_of_table(figures)
    others = dict.fromkeys(name.partition(".")[0] for name in figures if is_compared(name))
    values = [[figures[column], *(figures.get(f"{name}.{column}") for name in others)] for column in columns]
    table = [["", MODEL, *others], *([column, *_format(row)] for column, row in zip(columns, values, strict=True))]
    table = [list(row) for row in zip(*table, strict=True)]
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in table
    )


def _format(values: Sequence[float | None]) -> list[str]:
    """Values of a metric: percentages with two digits, and numbers below 10 with four."""
    digits = 2 if any(value is not None and abs(value) >= 10 for value in values) else 4
    return ["-" if value is None else f"{value:.{digits}f}" for value in values]
