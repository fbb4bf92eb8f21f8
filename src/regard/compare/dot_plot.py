"""A strip: every seed as a dot on a line that all strips of a figure share, the mean, and how far the dots spread."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.compare.outcome import Column, Outcome
from regard.compare.spread import Spread, said

WIDTH, HEIGHT, EDGE = 96, 14, 4


class Scale(NamedTuple):
    """The numbers at both ends of a figure's strips."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Where a number lies, in units of the drawing; all in the middle where there is but one."""
        if self.high <= self.low:
            return WIDTH / 2
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)


def scale(column: Column, outcomes: Sequence[Outcome], seeds: int) -> Scale:
    """From the least to the greatest number that any training has; the ends of intervals too where those are drawn."""
    numbers = [value for each in outcomes if (value := column.of(each)) is not None]
    if seeds == 1:
        numbers += [end for each in outcomes for end in column.interval(each) or ()]
    return Scale(min(numbers), max(numbers)) if numbers else Scale(0.0, 0.0)


def strip(column: Column, outcomes: Sequence[Outcome], shared: Scale) -> str:
    """The drawing of one cell. One training alone has the interval of its sentences where several have their deviation."""
    told = [(each, value) for each in outcomes if (value := column.of(each)) is not None]
    spread = Spread(tuple(value for _, value in told))
    whisker = column.interval(told[0][0]) if len(told) == 1 else None
    if (deviation := spread.deviation) is not None:
        whisker = spread.mean - deviation, spread.mean + deviation
    title = "; ".join(f"{each.seed}: {said(value)}{_between(column.interval(each))}" for each, value in told)
    middle = HEIGHT / 2
    drawn = [f'<line class="axis" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{middle}" y2="{middle}"/>']
    if whisker is not None:
        low, high = map(shared.place, whisker)
        drawn.append(f'<line class="spread" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>')
    if len(told) > 1:
        mean = shared.place(spread.mean)
        drawn.append(f'<line class="mean" x1="{mean}" x2="{mean}" y1="2" y2="{HEIGHT - 2}"/>')
    drawn += [f'<circle cx="{shared.place(value)}" cy="{middle}" r="2.2"/>' for _, value in told]
    opening = f'<svg class="strip" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    return f'{opening} aria-label="{title}"><title>{title}</title>{"".join(drawn)}</svg>'


def _between(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" [{said(interval[0])}, {said(interval[1])}]"
