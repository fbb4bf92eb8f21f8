"""Reading of series: from CSV, from Parquet, or from a pandas DataFrame.

A CSV file has a header; its delimiter is a comma, a semicolon or a tab, and a .gz is undone. What is wrong is a DataError
that names row and column: nothing is dropped, and nothing that is missing becomes zero.
"""

import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import Bounds, Line, lines
from regard.data.parquet import open_parquet
from regard.data.records import no_column
from regard.data.series.calendar import DATE, Times, parse_times
from regard.data.series.grid import Regular, Rows, regularise
from regard.data.series.records import Names, SeriesColumns, SeriesRecord, Values
from regard.errors import DataError

MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "?"))
"""Cells that say that a value is missing, in any case."""
DELIMITERS = ",;\t"
MAX_COLUMNS = 100_000
"""Columns of a table, and MAX_TARGETS of those that are forecast together."""
MAX_TARGETS = 4096

Cells = Sequence[Any] | NDArray[Any]


class Columns(NamedTuple):
    """Cells of a table by column, and the place of each row."""

    names: list[str]
    read: Callable[[str], Cells]
    place: Callable[[int], str]
    rows: int
    table: str


def read_series(table: Any, columns: SeriesColumns = SeriesColumns(), bounds: Bounds = Bounds()) -> list[SeriesRecord]:
    """Series of a path or of a pandas DataFrame, in the order in which they first occur."""
    if isinstance(table, str | Path):
        parquet = str(table).endswith((".parquet", ".pq"))
        cells = _read_parquet(str(table), columns, bounds) if parquet else _read_csv(str(table), bounds)
    elif hasattr(table, "columns") and hasattr(table, "index"):
        cells = _read_frame(table)
    else:
        raise TypeError(f"series are read from a path or from a pandas DataFrame, got {type(table).__name__}")
    if not cells.rows:
        raise DataError(f"{cells.table} has a header and no rows")
    return list(_split_by_id(cells, _resolve(cells, columns)))


def read_rows(
    names: Sequence[str], rows: Sequence[Sequence[str]], places: Sequence[str], columns: SeriesColumns, table: str
) -> list[SeriesRecord]:
    """Series of some rows of a CSV table, such as those that arrive one by one; `places` are theirs, for errors."""
    index = {name: number for number, name in enumerate(names)}
    cells = Columns(list(names), lambda name: [row[index[name]] for row in rows], places.__getitem__, len(rows), table)
    return list(_split_by_id(cells, _resolve(cells, columns)))


def _read_csv(path: str, bounds: Bounds) -> Columns:
    """Cells of a CSV file; a row that has more or fewer cells than the header is an error."""
    texts = lines(path, bounds=bounds)
    first = next(texts)
    delimiter = max(DELIMITERS, key=lambda character: _outside_quotes(first.text).count(character))
    numbers: list[int] = []
    table: list[list[str]] = []
    reader = csv.reader(_rejoin(first, texts), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(reader)]
        _check_header(names, path)
        for row in reader:
            if row:
                if len(row) != len(names):
                    raise DataError(f"{path}:{reader.line_num} has {len(row):,} cells, and the header names {len(names):,}")
                table.append(row)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num} is not CSV: {error}") from error
    index = {name: number for number, name in enumerate(names)}
    return Columns(
        names, lambda name: [row[index[name]] for row in table], lambda row: f"{path}:{numbers[row]}", len(table), path
    )


def _rejoin(first: Line, rest: Iterator[Line]) -> Iterator[str]:
    yield first.text + "\n"
    for line in rest:
        yield line.text + "\n"


def _outside_quotes(text: str) -> str:
    return re.sub(r'"[^"]*"', "", text)


def _check_header(names: Sequence[str], path: str) -> None:
    if len(names) > MAX_COLUMNS:
        raise DataError(
            f"{path} has {len(names):,} columns, and at most {MAX_COLUMNS:,} are read; "
            "put one series after another, with an id column"
        )
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise DataError(f"{path}:1 has {names.count(twice)} columns called {twice!r}; give each a name of its own")
    if names and all(_is_number(name) for name in names):
        raise DataError(f"{path}:1 has only numbers, and names of the columns are needed there; add a header")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: str, columns: SeriesColumns, bounds: Bounds) -> Columns:
    with open_parquet(path) as file:
        names = list(file.schema_arrow.names)
        _check_header(names, path)
        rows = file.metadata.num_rows
        named = {columns.time, *columns.target, *columns.past, *columns.known, *columns.static, columns.id, columns.label}
        wanted = [name for name in names if name in named] if columns.target and columns.time else names
        bounds.room(path, os.path.getsize(path), _claimed_bytes(file, wanted), rows)
        table = file.read(columns=wanted)
        cells = {name: _from_arrow(table.column(name), path, name) for name in wanted}
    return Columns(names, cells.__getitem__, lambda row: f"{path}:{row + 1}", rows, path)


def _claimed_bytes(file: Any, wanted: Sequence[str]) -> int:
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in wanted)


def _from_arrow(column: Any, path: str, name: str) -> Cells:
    from pyarrow import types  # type: ignore[import-untyped]

    kind = column.type
    if types.is_timestamp(kind) or types.is_date(kind):
        moments: Cells = column.cast("timestamp[s]", safe=False).to_numpy()
        return moments
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        numbers: Cells = column.cast("float64", safe=False).to_numpy()
        return numbers
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return ["" if value is None else str(value) for value in column.to_pylist()]
    raise DataError(f"{path} has {kind} in column {name!r}; times, numbers and text are read")


def _read_frame(frame: Any) -> Columns:
    names = [str(name) for name in frame.columns]
    _check_header(names, "the DataFrame")
    cells = dict(zip(names, (frame[name] for name in frame.columns), strict=True))
    index = frame.index
    if index.name is not None or getattr(index.dtype, "kind", "") == "M":
        name = str(index.name or "time")
        if name not in cells:
            names, cells = [name, *names], {name: index, **cells}

    def read(name: str) -> Cells:
        array = cells[name].to_numpy()
        if array.dtype.kind == "M":
            moments: Cells = array.astype("datetime64[s]")
            return moments
        if array.dtype.kind in "fiub":
            numbers: Cells = array.astype(np.float64)
            return numbers
        return ["" if value is None or value != value else str(value) for value in array.tolist()]

    return Columns(names, read, lambda row: f"row {row} of the DataFrame", len(frame), "the DataFrame")


def _resolve(cells: Columns, columns: SeriesColumns) -> SeriesColumns:
    """Columns with every name settled; one that is not there is an error that names the nearest."""
    time = columns.time or _find_time(cells)
    others = (*columns.past, *columns.known, *columns.static, *filter(None, (columns.id, columns.label, time)))
    target = columns.target or tuple(name for name in cells.names if name not in others)
    for name in (*target, *others):
        if name not in cells.names:
            raise no_column(name, cells.names, cells.table)
    shared = sorted({name for name in target if name in (*columns.known, *columns.static, columns.id, time)})
    if shared:
        raise DataError(f"column {shared[0]!r} of {cells.table} is named as a target and as something else; name it once")
    if not target:
        raise DataError(f"{cells.table} has no column left to forecast; name one with data.target")
    if len(target) > MAX_TARGETS:
        raise DataError(
            f"{cells.table} has {len(target):,} columns to forecast, and at most {MAX_TARGETS:,} are "
            "forecast together; name some with "
            "data.target, or put one series after another with an id column"
        )
    settled = {
        name: getattr(columns, name)
        for name in ("past", "known", "static", "id", "label", "frequency", "time_format", "irregular")
    }
    return SeriesColumns(time=time, target=target, **settled)


def _find_time(cells: Columns) -> str:
    """First of the columns whose first cell is a date; none where there is none."""
    for name in cells.names:
        first = next(iter(islice(cells.read(name), 1)), None)
        if isinstance(first, np.datetime64) or (isinstance(first, str) and DATE.fullmatch(first.strip())):
            return name
    return ""


def _split_by_id(cells: Columns, columns: SeriesColumns) -> Iterator[SeriesRecord]:
    parts = {
        "target": _numbers(cells, columns.target),
        "past": _numbers(cells, columns.past),
        "known": _numbers(cells, columns.known),
    }
    times = _times(cells, columns)
    label = _labels(cells, columns.label) if columns.label else None
    static = [[str(value) for value in cells.read(name)] for name in columns.static]
    names = Names(columns.target, columns.past, columns.known, columns.static, columns.time)
    for key, rows in _groups(cells, columns.id).items():
        which = f" of series {key!r}" if columns.id else ""
        place = Rows(partial(_place, cells, rows), columns, cells.table, which)
        constant = tuple(
            _constant([column[row] for row in rows], rows, name, cells)
            for name, column in zip(columns.static, static, strict=True)
        )
        own = {name: values[rows] for name, values in parts.items()}
        regular = regularise(times[rows], own, None if label is None else label[rows], place)
        yield _build(regular, names, static=constant, id=key, where=cells.place(int(rows[0])))


def _groups(cells: Columns, column: str) -> dict[str, NDArray[np.int64]]:
    if not column:
        return {"": np.arange(cells.rows)}
    groups: dict[str, list[int]] = {}
    for row, key in enumerate(cells.read(column)):
        name = f"{key:g}" if isinstance(key, float) else str(key)
        if not name.strip():
            raise DataError(f"{cells.place(row)} has no id in column {column!r}; fill it in, or leave the row out")
        groups.setdefault(name, []).append(row)
    return {key: np.array(rows) for key, rows in groups.items()}


def _constant(values: Sequence[str], rows: NDArray[np.int64], name: str, cells: Columns) -> str:
    for row, value in zip(rows, values, strict=True):
        if value != values[0]:
            raise DataError(
                f"{cells.place(int(row))} has {value[:40]!r} in the static column {name!r}, and the series began with "
                f"{values[0][:40]!r}; a "
                "covariate that changes is named in data.past or data.known"
            )
    return values[0]


def _numbers(cells: Columns, names: Sequence[str]) -> Values:
    """Numbers of columns as (rows, columns), NaN where a cell says that its value is missing."""
    if not names:
        return np.zeros((cells.rows, 0))
    return np.stack([_column_numbers(cells, name) for name in names], 1)


def _column_numbers(cells: Columns, name: str) -> Values:
    column = cells.read(name)
    if isinstance(column, np.ndarray) and column.dtype.kind != "f":
        raise DataError(f"{cells.place(0)} needs a number in column {name!r}, got {column[0]}")
    try:
        numbers = np.asarray(column, np.float64)
    except ValueError:
        numbers = np.array([_number(text, row, name, cells) for row, text in enumerate(column)])
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise DataError(
            f"{cells.place(row)} has an infinity in column {name!r}; leave the cell empty where a value is missing"
        )
    return numbers


def _number(text: str, row: int, name: str, cells: Columns) -> float:
    if text.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        raise DataError(
            f"{cells.place(row)} needs a number in column {name!r}, got {text[:40]!r}; an empty cell is a missing value, "
            "and data.target "
            "names the columns that are read"
        ) from None


def _labels(cells: Columns, name: str) -> NDArray[np.bool_]:
    numbers = _column_numbers(cells, name)
    wrong = np.flatnonzero(~np.isin(numbers, (0, 1)))
    if len(wrong):
        raise DataError(f"{cells.place(int(wrong[0]))} needs 0 or 1 in column {name!r}, got {numbers[wrong[0]]:g}")
    labels: NDArray[np.bool_] = numbers == 1
    return labels


def _times(cells: Columns, columns: SeriesColumns) -> Times:
    if not columns.time:
        return np.arange(cells.rows, dtype=np.float64)
    column = cells.read(columns.time)
    if isinstance(column, np.ndarray):
        missing = np.flatnonzero(np.isnat(column) if column.dtype.kind == "M" else ~np.isfinite(column))
        if len(missing):
            raise DataError(f"{cells.place(int(missing[0]))} has no time in column {columns.time!r}")
        return column.astype(np.int64) if column.dtype.kind == "M" else column
    places = _Places(cells)
    return parse_times(column, places, columns.time, columns.time_format)


class _Places(Sequence[str]):
    """Places of the rows of a table, spelt when an error needs one."""

    def __init__(self, cells: Columns):
        self._cells = cells

    def __len__(self) -> int:
        return self._cells.rows

    def __getitem__(self, row: Any) -> Any:
        if row >= len(self):
            raise IndexError(row)
        return self._cells.place(row)


def _place(cells: Columns, rows: NDArray[np.int64], row: int) -> str:
    return cells.place(int(rows[row]))


def _build(regular: Regular, names: Names, **own: Any) -> SeriesRecord:
    """Record of regular rows: those at the end that have no target, and known covariates, are its future."""
    target, known = regular.values["target"], regular.values["known"]
    end = len(target)
    if known.shape[1]:
        observed = np.flatnonzero(~np.isnan(target).all(1))
        end = int(observed[-1]) + 1 if len(observed) else end
    label = None if regular.label is None else regular.label[:end]
    parts: dict[str, Any] = {
        "past": regular.values["past"][:end],
        "known": known,
        "future": regular.times[end:],
        "label": label,
    }
    return SeriesRecord(regular.times[:end], target[:end], names, regular.frequency, **parts, **own)
