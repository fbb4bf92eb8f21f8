"""Windows of series: a look-back and the horizon after it, at every origin of a split by time.

An origin t is the first step that is forecast: a model reads the steps before t, and is compared with t and later.

    training     t - look-back ... t ... t + horizon      all of it inside the training rows
    validation   the horizon inside the validation rows; the look-back may reach back into the training rows
    test         the same for the test rows

No window is dropped, and none reads a value at or after its origin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import Padded
from regard.data.loader import Buckets, Loader
from regard.data.series.batch import SeriesBatch, SeriesSource
from regard.data.series.records import SeriesRecord
from regard.errors import DataError


@dataclass(frozen=True, eq=False)
class EncodedSeries:
    """A series as numbers: scaled values with the mask of those that were there, and covariates up to the last known."""

    record: SeriesRecord
    data: NDArray[np.float32]
    """(steps, targets), 0 where a value is missing."""
    observed: NDArray[np.bool_]
    past: NDArray[np.float32]
    known: NDArray[np.float32]
    """(steps + future, known)."""
    static: NDArray[np.int64]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.data)


class Window(NamedTuple):
    """Example of a forecast: a series and the first step that is forecast."""

    series: EncodedSeries
    origin: int

    @property
    def record(self) -> SeriesRecord:
        """The series as it was read."""
        return self.series.record

    @property
    def source(self) -> str:
        """Name of the series, and the first step that is forecast."""
        return f"{self.record.source}, step {self.origin + 1:,}"


class Span(NamedTuple):
    """Origins of one series: from the first one to the last one, a stride apart."""

    first: int
    last: int
    stride: int = 1

    @property
    def origins(self) -> int:
        """Number of origins."""
        return max(0, (self.last - self.first) // self.stride + 1)


class Windows(Sequence[Window]):
    """Windows of several series, which copy nothing until they are collated."""

    def __init__(self, series: Sequence[EncodedSeries], spans: Sequence[Span]):
        self.series, self.spans = list(series), list(spans)
        self._ends = np.cumsum([span.origins for span in self.spans])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, index: int) -> Window: ...
    @overload
    def __getitem__(self, index: slice) -> list[Window]: ...
    def __getitem__(self, index: int | slice) -> Window | list[Window]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self):,} windows, and window {index} was asked for")
        place = index % len(self)
        number = int(np.searchsorted(self._ends, place, side="right"))
        within = place - (int(self._ends[number - 1]) if number else 0)
        return Window(self.series[number], self.spans[number].first + within * self.spans[number].stride)


class Rows(NamedTuple):
    """Bounds of the training, validation and test rows of a series: each part goes up to its bound."""

    train: int
    valid: int
    test: int


def split_rows(length: int, split: Sequence[int | float]) -> Rows:
    """Bounds of the rows that train, validate and test, in the order of time.

    `split` are three numbers of rows, after which rows are unused, or three shares of the rows that add up to 1.
    """
    if len(split) != 3 or min(split) < 0 or split[0] == 0:
        raise DataError(f"a split is three numbers, of training, validation and test rows, got {_spell(split)}")
    if max(split) > 1 or sum(split) > 1 + 1e-9:
        if any(part != int(part) for part in split):
            raise DataError(f"a split is three numbers of rows, or three shares that add up to 1, got {_spell(split)}")
        bounds = np.cumsum([int(part) for part in split])
        if bounds[-1] > length:
            raise DataError(f"a split of {_spell(split)} needs {bounds[-1]:,} rows, and the series has {length:,}")
        return Rows(*bounds.tolist())
    train, valid, test = (int(length * part) for part in split)
    end = length if sum(split) > 1 - 1e-9 else train + valid + test
    return Rows(train, end - test, end)


def _spell(split: Sequence[int | float]) -> str:
    return ", ".join(f"{part:g}" for part in split)


def training_span(rows: int, look_back: int, horizon: int, stride: int = 1) -> Span:
    """Origins whose horizons are inside the training rows; look-backs too, where the series is long enough for one."""
    first = min(look_back, max(1, rows - horizon))
    return Span(first, rows - horizon, stride)


def evaluation_span(first_row: int, last_row: int, horizon: int, stride: int = 1) -> Span:
    """Origins whose horizons are inside rows, from the first one up to the last one; look-backs may begin before them."""
    return Span(max(1, first_row), last_row - horizon, stride)


def rolling_span(rows: int, horizon: int, count: int) -> Span:
    """The last `count` origins, a horizon apart: as a forecast that is repeated when its horizon is over."""
    first = rows - count * horizon
    if first < 1:
        raise DataError(
            f"{count} rolling windows with a horizon of {horizon} need {count * horizon + 1:,} rows, and the "
            f"series has {rows:,}"
        )
    return Span(first, rows - horizon, horizon)


def future_span(rows: int) -> Span:
    """The one origin after the end of a series."""
    return Span(rows, rows)


def collate(windows: Sequence[Window], look_back: int, horizon: int) -> SeriesBatch:
    """Batch of windows; horizons that reach past the end of a series are masked there, and are None where all do."""
    sources = [_source(window, look_back, horizon) for window in windows]
    source = SeriesSource(*(torch.from_numpy(np.stack(parts)) for parts in zip(*sources, strict=True)))
    records = tuple(windows)
    if all(window.origin >= len(window.series) for window in windows):
        return SeriesBatch(source, None, None, records)
    targets = [_cut(window.series.data, window.origin, window.origin + horizon) for window in windows]
    observed = [_cut(window.series.observed, window.origin, window.origin + horizon) for window in windows]
    keep = [np.arange(window.origin, window.origin + horizon) < len(window.series) for window in windows]
    target = Padded(torch.from_numpy(np.stack(targets)), torch.from_numpy(np.stack(keep)))
    return SeriesBatch(source, target, torch.from_numpy(np.stack(observed)), records)


def _source(window: Window, look_back: int, horizon: int) -> Iterator[NDArray[Any]]:
    series, first, origin = window.series, window.origin - look_back, window.origin
    yield _cut(series.data, first, origin)
    yield np.arange(first, origin) >= 0
    yield _cut(series.observed, first, origin)
    yield _cut(series.past, first, origin)
    yield _cut(series.known, first, origin + horizon)
    yield from (series.static, series.mean, series.scale)


def _cut(values: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Rows from the first one up to the last one; 0 before the beginning and after the end."""
    inside = values[max(0, first) : max(0, last)]
    before = min(max(0, -first), last - first)
    if len(inside) == last - first:
        return inside
    padded = np.zeros((last - first, *values.shape[1:]), values.dtype)
    padded[before : before + len(inside)] = inside
    return padded


class SeriesLoader(Loader):
    """Batches of `batch_size` windows; the last batch of an epoch is smaller, and not dropped."""

    def __init__(
        self,
        windows: Sequence[Window],
        look_back: int,
        horizon: int,
        *,
        batch_size: int = 32,
        seed: int = 0,
        shuffle: bool = True,
    ):
        if not len(windows):
            raise ValueError("a loader needs at least one window, got none")
        if batch_size < 1 or seed < 0:
            raise ValueError(
                f"a loader needs a batch_size of at least 1 and a seed of at least 0, got {batch_size} and {seed}"
            )
        self.examples, self.look_back, self.horizon = windows, look_back, horizon
        cuts = [*range(0, len(windows), batch_size), len(windows)]
        numbers = np.arange(len(windows))
        super().__init__(Buckets(np.zeros(len(windows), np.int64), cuts, numbers, cuts), seed, shuffle)

    def collate(self, indices: Sequence[int], step: int | None = None) -> SeriesBatch:
        """Windows with these indices, as one batch."""
        return collate([self.examples[index] for index in indices], self.look_back, self.horizon)
