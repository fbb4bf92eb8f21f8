"""Records of a series: columns of a table, and what was read of them."""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.series.calendar import Frequency, Times

Values = NDArray[np.float64]
Irregular = Literal["refuse", "insert", "mean", "last"]
"""Policy for times that are not one step apart: an error, insertion of missing steps, resampling by mean or last value."""


@dataclass(frozen=True)
class SeriesColumns:
    """Columns of a table of series, by name, and the grid of its times."""

    time: str = ""
    """Column of times; empty: the first one whose first cell is a time, and row numbers where there is none."""
    target: tuple[str, ...] = ()
    """Columns to forecast; none: every column of numbers that is nothing else."""
    past: tuple[str, ...] = ()
    """Covariates that are known up to the present."""
    known: tuple[str, ...] = ()
    """Covariates that are known for the horizon too: prices, holidays, promotions."""
    static: tuple[str, ...] = ()
    """Covariates that do not change along a series."""
    id: str = ""
    """Column that tells series apart; empty: the file holds one."""
    label: str = ""
    """Column of known anomalies, 0 or 1."""
    frequency: str = ""
    """Frequency, such as 15min, h, D, M; empty: inferred from the times."""
    time_format: str = ""
    """Format of the times, as strptime has it; empty: ISO 8601."""
    irregular: Irregular = "refuse"


class Names(NamedTuple):
    """Names of the columns of a record."""

    target: tuple[str, ...]
    past: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    time: str = ""
    """Column of times; empty: the rows are numbered."""


@dataclass(frozen=True, eq=False)
class SeriesRecord:
    """One series: values by time, NaN where they are missing, and covariates."""

    times: Times
    target: Values
    """(times, targets)."""
    names: Names
    frequency: Frequency
    past: Values
    """(times, past covariates)."""
    known: Values
    """(times + future, known covariates): longer than the targets where the table goes on without them."""
    future: Times
    """Times after the last target for which known covariates are given."""
    static: tuple[str, ...] = ()
    id: str = ""
    label: NDArray[np.bool_] | None = None
    where: str = ""
    """Place of its first row: "sales.csv:2"."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def source(self) -> str:
        """Name of the series: its id, or the place of its first row."""
        return self.id or self.where

    @property
    def all_times(self) -> Times:
        """Times of the targets and those after them."""
        joined: Times = np.concatenate((self.times, self.future))
        return joined

    def between(self, first: int, last: int) -> "SeriesRecord":
        """Steps from one index up to another; known covariates of later steps stay known."""
        following = self.all_times[last:]
        label = None if self.label is None else self.label[first:last]
        parts: dict[str, Any] = {"times": self.times[first:last], "target": self.target[first:last], "future": following}
        return replace(self, **parts, past=self.past[first:last], known=self.known[first:], label=label)
