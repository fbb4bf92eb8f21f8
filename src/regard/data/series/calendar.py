"""Times of a series: their text, the frequency of their steps, and calendar features.

Times are seconds since 1970 in UTC as `int64`, or plain numbers as `float64` where a column of times holds numbers. A
frequency is a fixed number of seconds, a number of calendar months, or a fixed difference of plain numbers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError

Times = NDArray[Any]
Unit = Literal["seconds", "months", "numbers"]

DAY = 86_400
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
MONTHS = {"m": 1, "q": 3, "y": 12}
FREQUENCY = re.compile(r"(\d*)\s*(s|min|h|d|w|m|q|y)", re.IGNORECASE)
DATE = re.compile(
    r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?"
)
NEEDED = "a time such as 2024-01-31, 2024-01-31 18:00 or 2024-01-31T18:00:00Z, or a number"


@dataclass(frozen=True)
class Frequency:
    """Distance between two steps of a series."""

    count: int | float
    unit: Unit = "seconds"
    month_end: bool = False
    """True where each step is the last day of its month."""

    @classmethod
    def parse(cls, text: str) -> "Frequency":
        """Frequency of a text: 15min, h, D, W, M (calendar months), Q, Y."""
        match = FREQUENCY.fullmatch(text.strip())
        count = int(match[1] or 1) if match else 0
        if not match or not count:
            raise DataError(f"a frequency is a number and a unit of s, min, h, D, W, M, Q or Y, such as 15min, got {text!r}")
        unit = match[2].lower()
        if unit in MONTHS:
            return cls(count * MONTHS[unit], "months")
        return cls(count * SECONDS[unit])

    def __str__(self) -> str:
        if self.unit == "numbers":
            return f"{self.count:g}"
        units = MONTHS if self.unit == "months" else SECONDS
        name, size = next((name, size) for name, size in reversed(units.items()) if self.count % size == 0)
        count = int(self.count // size)
        return f"{count if count > 1 else ''}{name if name in ('s', 'min', 'h') else name.upper()}"

    def steps_after(self, time: int | float, steps: int) -> Times:
        """Times of the steps that follow a time."""
        numbers = np.arange(1, steps + 1)
        if self.unit == "numbers":
            return time + numbers * self.count
        if self.unit == "seconds":
            return int(time) + numbers * int(self.count)
        return _add_months(int(time), numbers * int(self.count), self.month_end)

    def steps_between(self, first: int | float, last: int | float) -> Times:
        """Times of the steps from the first time up to the last, both included where they are on the grid."""
        if self.unit == "months":
            start, end = (np.asarray(end, "int64").astype("datetime64[s]").astype("datetime64[M]") for end in (first, last))
            count = int((end - start).astype("int64") // int(self.count))
        else:
            count = int(np.floor((last - first) / self.count + 1e-9))
        dtype = np.float64 if self.unit == "numbers" else np.int64
        return np.concatenate((np.asarray([first], dtype), self.steps_after(first, count))).astype(dtype)

    @property
    def seasons(self) -> tuple[int, ...]:
        """Steps of the natural cycles (day, week, year) that have at least two and at most 366 steps, shortest first."""
        if self.unit == "numbers":
            return ()
        if self.unit == "months":
            return (12 // int(self.count),) if self.count < 12 and 12 % self.count == 0 else ()
        cycles = (DAY / self.count, 7 * DAY / self.count, 365.25 * DAY / self.count)
        whole = [round(cycle) for cycle in cycles if 2 <= cycle <= 366.5 and (cycle == int(cycle) or self.count >= DAY)]
        return tuple(dict.fromkeys(whole))


class Inferred(NamedTuple):
    """Frequency of times, and the index of the first time that is not one step after the time before it."""

    frequency: Frequency
    irregular: int | None


def parse_times(texts: Sequence[str], places: Sequence[str], column: str, time_format: str = "") -> Times:
    """Times of texts: seconds since 1970, or the numbers themselves if all are numbers.

    `time_format` is a format of strptime, for dates whose order of day and month no program can know.
    """
    if time_format:
        return np.array([_parse_format(*cell, column, time_format) for cell in zip(texts, places, strict=True)], np.int64)
    if texts and not DATE.fullmatch(texts[0].strip()):
        return _parse_numbers(texts, places, column)
    return np.array([_parse_date(*cell, column) for cell in zip(texts, places, strict=True)], np.int64)


def format_times(times: Times) -> list[str]:
    """Texts of times: dates without a time of day if all are at midnight."""
    if times.dtype.kind == "f":
        return [f"{time:.15g}" for time in times.tolist()]
    moments = times.astype("datetime64[s]")
    if not (times % DAY).any():
        return [str(moment) for moment in moments.astype("datetime64[D]")]
    return [str(moment).replace("T", " ") for moment in moments]


def infer_frequency(times: Times) -> Inferred:
    """Frequency of ascending times: that of all steps, or the most common one and the first step that differs."""
    if len(times) < 2:
        raise DataError("the frequency of a series needs two times at least; name it with data.frequency")
    steps = np.diff(times)
    if times.dtype.kind == "f":
        step = float(np.median(steps))
        return Inferred(Frequency(step, "numbers"), _first(~np.isclose(steps, step, rtol=1e-6)))
    if (monthly := _infer_months(times)) is not None:
        return Inferred(monthly, None)
    sizes, counts = np.unique(steps, return_counts=True)
    step = int(sizes[counts.argmax()])
    return Inferred(Frequency(step), _first(steps != step))


def irregular_step(times: Times, frequency: Frequency) -> int | None:
    """Index of the first time that is not one step of the frequency after the time before it."""
    if len(times) < 2:
        return None
    expected = frequency.steps_after(float(times[0]), len(times) - 1)
    tolerance = 1e-6 * frequency.count if frequency.unit == "numbers" else 0
    return _first(~np.isclose(times[1:], expected, rtol=0, atol=tolerance))


FEATURES = ("minute of hour", "hour of day", "day of week", "day of month", "day of year", "month of year")


def calendar_features(times: Times, frequency: Frequency) -> NDArray[np.float32]:
    """Calendar features of times, each from -0.5 to 0.5, as (times, features); none for plain numbers.

    Those that a frequency keeps constant are left out: a daily series has no hour of day.
    """
    if times.dtype.kind == "f":
        return np.zeros((len(times), 0), np.float32)
    moments = times.astype("datetime64[s]")
    days, months, years = (moments.astype(f"datetime64[{unit}]") for unit in ("D", "M", "Y"))
    shares = {
        "minute of hour": (times % 3600) / 3600,
        "hour of day": (times % DAY) / DAY,
        "day of week": ((days.astype(np.int64) + 3) % 7) / 6,
        "day of month": (days - months.astype("datetime64[D]")).astype(np.int64) / 30,
        "day of year": (days - years.astype("datetime64[D]")).astype(np.int64) / 365,
        "month of year": (months.astype(np.int64) % 12) / 11,
    }
    chosen = [shares[name] - 0.5 for name in feature_names(frequency)]
    return np.stack(chosen, 1).astype(np.float32) if chosen else np.zeros((len(times), 0), np.float32)


def feature_names(frequency: Frequency) -> tuple[str, ...]:
    """Names of the calendar features of a frequency."""
    if frequency.unit == "numbers":
        return ()
    if frequency.unit == "months":
        return ("month of year",) if frequency.count < 12 else ()
    finest = 0 if frequency.count < 3600 else 1 if frequency.count < DAY else 2 if frequency.count < 7 * DAY else 3
    return FEATURES[finest:5]


def _parse_date(text: str, place: str, column: str) -> int:
    match = DATE.fullmatch(text.strip())
    try:
        if match:
            year, month, day, hour, minute, second = (
                int(part or default) for part, default in zip(match.groups()[:6], (0, 0, 1, 0, 0, 0), strict=True)
            )
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            return int(moment.timestamp()) - _offset(match[7])
    except ValueError as error:
        raise DataError(f"{place} needs {NEEDED} in column {column!r}, got {text[:40]!r}: {error}") from error
    raise DataError(
        f"{place} needs {NEEDED} in column {column!r}, got {text[:40]!r}; data.time_format says how dates are written"
    )


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _parse_format(text: str, place: str, column: str, time_format: str) -> int:
    try:
        moment = datetime.strptime(text.strip(), time_format)
    except ValueError as error:
        raise DataError(
            f"{place} has {text[:40]!r} in column {column!r}, which is not as data.time_format says: {error}"
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _parse_numbers(texts: Sequence[str], places: Sequence[str], column: str) -> NDArray[np.float64]:
    numbers = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            numbers[row] = float(text)
        except ValueError:
            numbers[row] = np.nan
        if not np.isfinite(numbers[row]):
            raise DataError(
                f"{places[row]} needs {NEEDED} in column {column!r}, got {text[:40]!r}; "
                "data.time_format says how dates are written"
            )
    return numbers


def _infer_months(times: Times) -> Frequency | None:
    months = times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    steps = np.diff(months)
    if steps[0] < 1 or (steps != steps[0]).any():
        return None
    for month_end in (False, True):
        frequency = Frequency(int(steps[0]), "months", month_end)
        if (frequency.steps_after(float(times[0]), len(steps)) == times[1:]).all():
            return frequency
    return None


def _add_months(time: int, months: NDArray[np.int64], month_end: bool) -> Times:
    """A time of the same day of later months, or of their last day where they have fewer days."""
    moment = np.asarray(time).astype("datetime64[s]")
    first = moment.astype("datetime64[M]")
    day = int((moment.astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64))
    later = first + months
    length = ((later + 1).astype("datetime64[D]") - later.astype("datetime64[D]")).astype(np.int64)
    days = length - 1 if month_end else np.minimum(day, length - 1)
    midnight = (later.astype("datetime64[D]").astype(np.int64) + days) * DAY
    shifted: Times = midnight + time % DAY
    return shifted


def _first(differs: NDArray[np.bool_]) -> int | None:
    places = np.flatnonzero(differs)
    return int(places[0]) + 1 if len(places) else None
