"""Scores of a table while its rows arrive, with a state of a few windows for each series, however many rows there are.

A step is written once no later row can change its score: with model.aggregate=last and data.stride=1 that is at once.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.lines import Line, lines
from regard.data.series.reading import DELIMITERS, read_rows
from regard.data.series.records import SeriesColumns, SeriesRecord
from regard.errors import ConfigError, DataError
from regard.tasks.anomaly.codec import AnomalyCodec
from regard.tasks.anomaly.scoring import Postprocess, Rows, Scorer, Scores, format_steps

Build = Callable[[], tuple[Scorer, Postprocess]]
"""Builds the state of a series that begins."""
CHUNK = 512
"""Rows of a file that are scored together; rows of a pipe are scored one by one."""


@dataclass
class SeriesStream:
    """State of one series: its last row, its scorer, and the steps whose scores are not final."""

    scorer: Scorer
    postprocess: Postprocess
    last: tuple[list[str], str] | None = None
    """Cells and place of its last row, to which the next one is compared."""
    count: int = 0
    waiting: deque[tuple[str, bool]] = field(default_factory=deque)
    """Time of each step without a final score, and whether anything was observed of it."""

    def push(self, rows: Rows, times: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Times and scores of the steps that became final."""
        self.count += len(rows)
        observed: Any = rows.observed.any(1)
        self.waiting.extend(zip(times, observed.tolist(), strict=True))
        return self.release(self.scorer.push(rows))

    def release(self, scores: Scores) -> Iterator[tuple[str, float]]:
        """Times and scores of the steps that wait the longest."""
        for score in self.postprocess.push(scores).tolist():
            time, observed = self.waiting.popleft()
            yield time, score if observed else float("nan")


class TableStream:
    """Scores of the series of a table as its rows are pushed."""

    def __init__(
        self, codec: AnomalyCodec, build: Callable[[], tuple[Scorer, Postprocess]], names: Sequence[str], table: str
    ):
        self.codec, self.build, self.names, self.table = codec, build, list(names), table
        self.series: dict[str, SeriesStream] = {}
        self.numbered = codec.series.frequency.unit == "numbers"
        self.columns = self._columns()

    def _columns(self) -> SeriesColumns:
        columns = self.codec.columns
        if columns.irregular in ("mean", "last"):
            raise ConfigError(
                f"data.irregular={columns.irregular} resamples whole series, and a stream has rows alone; score the table "
                "without --stream"
            )
        return columns if self.numbered else replace(columns, frequency=str(self.codec.series.frequency))

    def push(self, rows: Sequence[tuple[list[str], str]]) -> Iterator[tuple[str, str, float]]:
        """Id, time and score of each step that becomes final with these rows, which are cells with their place."""
        before = [state.last for state in self.series.values() if state.last is not None]
        together = [*before, *rows]
        cells, places = [row for row, _ in together], [place for _, place in together]
        if len(together) == 1:  # the step of a series is known from two rows on
            return
        for record in read_rows(self.names, cells, places, self.columns, self.table):
            yield from self._push(record)
        key = self.names.index(self.columns.id) if self.columns.id else None
        for row, place in rows:
            self.series["" if key is None else row[key]].last = (row, place)

    def _push(self, record: SeriesRecord) -> Iterator[tuple[str, str, float]]:
        if record.id not in self.codec.series.scales:
            raise DataError(
                f"{record.where} is of series {record.id!r}, which was not among the training series, and a stream has no "
                "rows to scale it by; score the whole table without --stream, or train with this series"
            )
        self._check_step(record)
        state = self.series.get(record.id) or SeriesStream(*self.build())
        known = 0 if state.last is None else 1
        self.series[record.id] = state
        if known and self.numbered and not self.columns.time:
            record = replace(record, times=record.times + state.count - 1)
        rows = Rows.of(self.codec.encode(record)).cut(known, len(record))
        for time, score in state.push(rows, format_steps(record.times[known:], record.frequency)):
            yield record.id, time, score

    def _check_step(self, record: SeriesRecord) -> None:
        expected, step = self.codec.series.frequency, record.frequency
        same = not self.numbered or bool(np.isclose(step.count, expected.count, rtol=1e-6))
        if not (same and step.unit == expected.unit):
            raise DataError(f"{record.where} begins rows {step} apart, and the training series have a step of {expected}")

    def finish(self) -> Iterator[tuple[str, str, float]]:
        """Id, time and score of the steps that are left at the end."""
        for key, state in self.series.items():
            for time, score in state.release(state.scorer.finish()):
                yield key, time, score


def stream_table(source: str, codec: AnomalyCodec, build: Build) -> Iterator[tuple[str, str, float]]:
    """Id, time and score of each step of a CSV table by its path, as its rows arrive; "-" is standard input.

    Where a row is wrong, the steps before it are scored first.
    """
    if source.endswith((".parquet", ".pq")):
        raise DataError(f"{source} is Parquet, and a stream has rows of CSV; score the table without --stream")
    generator: Any = lines(source, bounds=codec.limits)
    with closing(generator) as texts:
        first = next(texts)
        delimiter = max(DELIMITERS, key=first.text.count)
        names = [name.strip() for name in _split(first, delimiter)]
        table = TableStream(codec, build, names, source)
        size = CHUNK if Path(source).is_file() else 1
        rows: list[tuple[list[str], str]] = []
        try:
            for line in texts:
                if not line.text.strip():
                    continue
                cells = _split(line, delimiter)
                if len(cells) != len(names):
                    raise DataError(f"{line.where} has {len(cells):,} cells, and the header names {len(names):,}")
                rows.append((cells, line.where))
                if len(rows) >= (size if table.series else max(2, size)):
                    yield from table.push(_take(rows))
            if not rows and not table.series:
                raise DataError(f"{source} has a header and no rows")
            if len(rows) == 1 and not table.series:
                raise DataError(f"{rows[0][1]} is the only row, and a series needs two at least")
            yield from table.push(_take(rows)) if rows else ()
        except DataError:
            yield from table.finish()
            raise
        yield from table.finish()


def _take(rows: list[Any]) -> list[Any]:
    taken = rows[:]
    rows.clear()
    return taken


def _split(line: Line, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise DataError(f"{line.where} is not CSV: {error}") from error
