"""Tables of series, split by time: rows to train on, then rows to validate with, then rows to test on."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from regard.data.lines import bounds
from regard.data.series.codec import Extent, SeriesCodec, choose_season, format_place
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesRecord
from regard.data.series.settings import SeriesData, build_columns, parse_split, split_names
from regard.data.series.windows import (
    EncodedSeries,
    Rows,
    Span,
    Windows,
    evaluation_span,
    split_rows,
    training_span,
)
from regard.errors import ConfigError, DataError, DataWarning


class Part(NamedTuple):
    """A series with the bounds of its training, validation and test rows."""

    record: SeriesRecord
    rows: Rows

    @property
    def training(self) -> SeriesRecord:
        """Training rows."""
        return self.record.between(0, self.rows.train)

    @property
    def extent(self) -> Extent:
        """Times that a training reads; tests end with the test rows where later ones are unused."""
        seen = float(self.record.times[self.rows.valid - 1])
        unused = self.rows.test < len(self.record)
        return Extent(seen, float(self.record.times[self.rows.test - 1]) if unused else None)


class Parts(NamedTuple):
    """Series to train on, each with its bounds, and tables of their own to validate with."""

    parts: list[Part]
    valid: list[SeriesRecord]
    """Empty where validation rows follow the training rows."""


def read(data: SeriesData, path: Any) -> list[SeriesRecord]:
    """Series of a table."""
    return read_series(path, build_columns(data), bounds(data))


def split_series(records: Sequence[SeriesRecord], data: SeriesData, valid: Sequence[SeriesRecord] = ()) -> Parts:
    """Series with the bounds of their rows; with a table to validate on, all rows before the test rows train."""
    split = parse_split(data.split)
    parts = []
    for record in records:
        rows = split_rows(len(record), split)
        if valid:
            rows = Rows(rows.valid, rows.valid, rows.test)
        parts.append(Part(record, rows))
    check_lengths(parts, data, bool(valid))
    check_targets([part.training for part in parts])
    return Parts(parts, list(valid))


def check_lengths(parts: Sequence[Part], data: SeriesData, has_valid: bool) -> None:
    """Raise unless some series is long enough for a window to train on, and one to validate with."""
    if data.horizon < 1:
        raise ConfigError(f"data.horizon is the number of steps to forecast, 1 or more, got {data.horizon}")
    longest = max(parts, key=lambda part: len(part.record))
    record, rows = longest
    need = data.horizon + 1
    if rows.train < need:
        raise DataError(
            f"{format_place(record)} has {len(record):,} rows, of which {rows.train:,} train (data.split={data.split}), and "
            f"data.horizon={data.horizon} needs {need:,} of them or more; give a longer series, or shorten the horizon"
        )
    if not has_valid and rows.valid - rows.train < data.horizon:
        raise DataError(
            f"{format_place(record)} has {rows.valid - rows.train:,} validation rows (data.split={data.split}), and "
            f"data.horizon={data.horizon} needs as many as its steps; give a longer series, another data.split, or a table "
            "data.valid=FILE"
        )


def check_targets(records: Sequence[SeriesRecord]) -> None:
    """Raise for targets without any value to learn from; warn where only some series have none."""
    for column, name in enumerate(records[0].names.target):
        values = [record.target[:, column] for record in records]
        empty = [np.isnan(part).all() for part in values]
        constant = [
            not hollow and float(np.nanmax(part)) == float(np.nanmin(part))
            for part, hollow in zip(values, empty, strict=True)
        ]
        first = records[0]
        last = f"{len(first):,} rows from {format_place(first)}"
        if all(empty):
            raise DataError(
                f"column {name!r} has no value in the {last} that train: all are missing; leave it out of data.target"
            )
        if all(hollow or same for hollow, same in zip(empty, constant, strict=True)):
            raise DataError(
                f"column {name!r} is constant in the {last} that train: {np.nanmax(values[constant.index(True)]):g} in "
                "every one, so that there is nothing to forecast; leave it out of data.target"
            )
        for record, hollow, same in zip(records, empty, constant, strict=True):
            if hollow or same:
                why = "has no value" if hollow else "is constant"
                warnings.warn(
                    f"column {name!r} {why} in the training rows of {format_place(record)}", DataWarning, stacklevel=2
                )


def training_windows(parts: Sequence[Part], series: Sequence[EncodedSeries], codec: SeriesCodec) -> Windows:
    """Windows inside the training rows."""
    spans = [training_span(part.rows.train, codec.look_back, codec.horizon) for part in parts]
    return Windows(series, spans)


def validation_windows(parts: Sequence[Part], series: Sequence[EncodedSeries], codec: SeriesCodec) -> Windows:
    """Windows whose horizons are inside the validation rows."""
    return Windows(series, [evaluation_span(part.rows.train, part.rows.valid, codec.horizon) for part in parts])


def whole_windows(series: Sequence[EncodedSeries], codec: SeriesCodec) -> Windows:
    """Windows of a table of its own: look-backs and horizons are inside it."""
    return Windows(series, [training_span(len(each), codec.look_back, codec.horizon) for each in series])


def unseen_windows(series: Sequence[EncodedSeries], codec: SeriesCodec) -> Windows:
    """Windows whose horizons are after all rows that a training has read, and before those that it leaves unused.

    A series that was not trained on has windows wherever its look-back is full.
    """
    spans = []
    for each in series:
        extent = codec.extents.get(each.record.id)
        times = each.record.times
        if extent is None or times[-1] <= extent.read_until < times[0]:
            spans.append(training_span(len(each), codec.look_back, codec.horizon))
            continue
        first = int(np.searchsorted(times, extent.read_until, side="right"))
        last = len(each) if extent.test_until is None else int(np.searchsorted(times, extent.test_until, side="right"))
        span = evaluation_span(first, last, codec.horizon)
        spans.append(span if first else Span(min(codec.look_back, max(1, last - codec.horizon)), last - codec.horizon))
    return Windows(series, spans)


def candidate_look_backs(parts: Sequence[Part], data: SeriesData) -> list[int]:
    """Look-backs to choose from: those named, or multiples of the longer one of horizon and season."""
    longest = max(part.rows.train for part in parts)
    room = longest - data.horizon
    if data.look_back:
        return [data.look_back]
    if data.look_backs:
        try:
            candidates = sorted({int(name) for name in split_names(data.look_backs)})
        except ValueError:
            candidates = [0]
        if min(candidates) < 1:
            raise ConfigError(
                f"data.look_backs is whole numbers of 1 or more with commas between them, got {data.look_backs!r}"
            )
        return candidates
    record = parts[0].record
    unit = max(data.horizon, data.season or choose_season(record.frequency, longest), 4)
    fitting = [unit * factor for factor in (1, 2, 4, 8) if 2 * unit * factor <= room]
    return fitting or [max(1, min(unit, room // 2))]
