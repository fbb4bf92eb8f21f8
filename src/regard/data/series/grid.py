"""Regular grid of a series: times one step apart, by refusal of irregular ones, by insertion, or by resampling."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.series.calendar import Frequency, Times, format_times, infer_frequency, irregular_step
from regard.data.series.records import SeriesColumns, Values
from regard.errors import DataError

MAX_FILLED = 4
"""Steps of a grid for each row of an irregular series: beyond it, most of what is filled in would be invented."""


class Rows(NamedTuple):
    """Rows of one series in their table, for errors about its times."""

    place: Callable[[int], str]
    """Place of a row: "sales.csv:17"."""
    columns: SeriesColumns
    table: str
    series: str
    """ " of series 'a'", and nothing where a table holds one."""

    @property
    def column(self) -> str:
        """Name of the column of times, quoted."""
        return repr(self.columns.time)


class Regular(NamedTuple):
    """Values at times one step apart."""

    times: Times
    values: dict[str, Values]
    label: NDArray[np.bool_] | None
    frequency: Frequency


def regularise(times: Times, values: dict[str, Values], label: NDArray[np.bool_] | None, rows: Rows) -> Regular:
    """Values on the grid of a frequency, as `irregular` says: refused, inserted as missing, or resampled."""
    _check_order(times, rows)
    frequency, irregular = _frequency(times, rows)
    if irregular is None and len(np.unique(times)) == len(times):
        return Regular(times, values, label, frequency)
    if rows.columns.irregular == "refuse":
        row = irregular or 1
        before, after = format_times(times[row - 1 : row + 1])
        raise DataError(
            f"{rows.place(row)} is at {after} in column {rows.column}, and the row before at {before}: "
            f"the step{rows.series} is "
            f"{frequency}; data.irregular=insert marks the steps between as missing, mean and last resample"
        )
    return _resample(times, values, label, frequency, rows)


def _frequency(times: Times, rows: Rows) -> tuple[Frequency, int | None]:
    """Frequency, as named or as inferred, and the first row that is not one step after the row before it."""
    if rows.columns.frequency:
        if times.dtype.kind == "f":
            raise DataError(f"data.frequency is {rows.columns.frequency}, and the times of {rows.table} are numbers")
        frequency = Frequency.parse(rows.columns.frequency)
        at_end = Frequency(frequency.count, frequency.unit, month_end=frequency.unit == "months")
        if irregular_step(times, frequency) is not None and irregular_step(times, at_end) is None:
            frequency = at_end
        return frequency, irregular_step(times, frequency)
    distinct = np.unique(times)
    if len(distinct) < 2:
        raise DataError(f"{rows.place(0)} is the only time{rows.series}, and a series needs two at least")
    return infer_frequency(distinct)


def _check_order(times: Times, rows: Rows) -> None:
    """Raise where times descend, or repeat and are not resampled."""
    steps = np.diff(times)
    if (steps < 0).any():
        row = int(np.flatnonzero(steps < 0)[0]) + 1
        before, after = format_times(times[row - 1 : row + 1])
        raise DataError(
            f"{rows.place(row)} is at {after} in column {rows.column}, before the row above it ({before})"
            f"{rows.series}; sort the "
            "rows by time"
        )
    if rows.columns.irregular in ("refuse", "insert") and (steps == 0).any():
        row = int(np.flatnonzero(steps == 0)[0]) + 1
        several = "; where a file holds several series, data.id names the column that tells them apart" * (
            not rows.columns.id
        )
        raise DataError(
            f"{rows.place(row)} has the time of the row above it, {format_times(times[row : row + 1])[0]}, in column "
            f"{rows.column}{rows.series}; leave one out, or resample with data.irregular=mean or last{several}"
        )


def _resample(
    times: Times, values: dict[str, Values], label: NDArray[np.bool_] | None, frequency: Frequency, rows: Rows
) -> Regular:
    regular = frequency.steps_between(float(times[0]), float(times[-1]))
    if len(regular) > MAX_FILLED * len(times) + 1:
        raise DataError(
            f"{rows.table} has {len(times):,} rows{rows.series}, and a step of {frequency} from the first to the last "
            "time needs "
            f"{len(regular):,}; name a longer step with data.frequency"
        )
    steps = np.searchsorted(regular, times, side="right") - 1
    policy = rows.columns.irregular
    if policy == "insert" and (between := np.flatnonzero(regular[steps] != times)).size:
        row = int(between[0])
        raise DataError(
            f"{rows.place(row)} is at {format_times(times[row : row + 1])[0]} in column {rows.column}, between two steps of "
            f"{frequency}{rows.series}; resample with data.irregular=mean or last"
        )
    combine = _mean_by_step if policy == "mean" else _last_by_step
    resampled = {name: combine(part, steps, len(regular)) for name, part in values.items()}
    flags = None
    if label is not None:
        flags = np.zeros(len(regular), bool)
        np.logical_or.at(flags, steps, label)
    return Regular(regular, resampled, flags, frequency)


def _mean_by_step(values: Values, steps: NDArray[np.int64], count: int) -> Values:
    present = ~np.isnan(values)
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    np.add.at(sums, steps, np.where(present, values, 0))
    np.add.at(counts, steps, present)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _last_by_step(values: Values, steps: NDArray[np.int64], count: int) -> Values:
    """Last value of each step that is not missing."""
    resampled = np.full((count, values.shape[1]), np.nan)
    for column in range(values.shape[1]):
        present = np.flatnonzero(~np.isnan(values[:, column]))
        resampled[steps[present], column] = values[present, column]
    return resampled
