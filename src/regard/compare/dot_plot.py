"""Dot plot of a metric: a dot for each seed on a scale that all plots of the metric share, with mean and deviation."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.compare.outcome import Column, Outcome
from regard.compare.spread import Spread, format_number

WIDTH, HEIGHT, EDGE = 96, 14, 4


class Scale(NamedTuple):
    """Limits of the scale of a metric."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Position of a value in the plot; the middle where all values are equal."""
        if self.high <= self.low:
            return WIDTH / 2
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)


def scale(column: Column, outcomes: Sequence[Outcome], seeds: int) -> Scale:
    """Scale from the least to the greatest value of all trainings, with the ends of intervals where those are shown."""
    numbers = [value for outcome in outcomes if (value := column.of(outcome)) is not None]
    if seeds == 1:
        numbers += [end for outcome in outcomes for end in column.interval(outcome) or ()]
    return Scale(min(numbers), max(numbers)) if numbers else Scale(0.0, 0.0)


def strip(column: Column, outcomes: Sequence[Outcome], shared: Scale) -> str:
    """SVG of one cell. A single training has its bootstrap interval in place of the deviation."""
    measured = [(outcome, value) for outcome in outcomes if (value := column.of(outcome)) is not None]
    spread = Spread(tuple(value for _, value in measured))
    whisker = column.interval(measured[0][0]) if len(measured) == 1 else None
    if (deviation := spread.deviation) is not None:
        whisker = spread.mean - deviation, spread.mean + deviation
    title = "; ".join(
        f"{outcome.seed}: {format_number(value)}{_between(column.interval(outcome))}" for outcome, value in measured
    )
    middle = HEIGHT / 2
    marks = [f'<line class="axis" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{middle}" y2="{middle}"/>']
    if whisker is not None:
        low, high = map(shared.place, whisker)
        marks.append(f'<line class="spread" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>')
    if len(measured) > 1:
        mean = shared.place(spread.mean)
        marks.append(f'<line class="mean" x1="{mean}" x2="{mean}" y1="2" y2="{HEIGHT - 2}"/>')
    marks += [f'<circle cx="{shared.place(value)}" cy="{middle}" r="2.2"/>' for _, value in measured]
    opening = f'<svg class="strip" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    return f'{opening} aria-label="{title}"><title>{title}</title>{"".join(marks)}</svg>'


def _between(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" [{format_number(interval[0])}, {format_number(interval[1])}]"
