"""Tables: records of a source and a target, from TSV, JSONL, Parquet, two parallel files, or several of these.

How a path is spelt says what it is, and a .gz behind text is undone:

    pairs.tsv, -           columns between tabs, taken as they stand (no quoting); "-" is standard input
    pairs.jsonl            one JSON object, or list, on each line (also .json, .ndjson)
    pairs.parquet          columns of text, read through pyarrow (the extra regard[parquet])
    train.de::train.en     two files with equally many lines, line by line a source and its target
    real.tsv+more.jsonl    several of these, one after the other; one that is named twice counts twice

A file whose own name has a + in it is taken as it stands.

A column is a name or a number from 1. The first line of a TSV file is its header as soon as one of the two is a name, or
data.header=true says so; in JSONL a number means the so-manieth value of the line, in Parquet the so-manieth column.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from regard.data.header import ColumnChecks, TableSettings
from regard.data.lines import LIMIT, Bounds, Line, decode_line, lines, raw_lines
from regard.data.records import SIDES, Columns, Record, no_column, numbered, parse_lines, record
from regard.errors import DataError

__all__ = ["LIMIT", "DataError", "Record", "read"]

BETWEEN = "::"
AND = "+"
SURROGATE = re.compile("[\ud800-\udfff]")

Form = Literal["tsv", "jsonl", "parquet"]


class Read(NamedTuple):
    """The most characters of a text, and what a compressed file may unpack to."""

    limit: int
    bounds: Bounds


Row = dict[str, Any] | list[Any]
"""A line of JSONL."""


def read(
    path: str | Path,
    source: str = "1",
    target: str = "2",
    need_target: bool = True,
    *,
    limit: int = LIMIT,
    form: Form | None = None,
    names: tuple[str, str] = SIDES,
    bounds: Bounds = Bounds(),
    settings: TableSettings = TableSettings(),
) -> Iterator[Record]:
    """The records of a file, one at a time; `form` overrides what the path's extension says.

    Anything wrong is a DataError with its place, which calls the sides by `names`; bad lines are named together in one.
    Without `need_target` a record may lack its target. With `settings`, columns that are probably meant otherwise are warned
    of.
    """
    place = str(path)
    columns = Columns(source, target, need_target, names, settings)
    return (_several if _joined(place) else _one)(place, columns, Read(limit, bounds), form)


def files(path: str) -> list[str]:
    """The files that a path names."""
    return [file for part in (path.split(AND) if _joined(path) else [path]) for file in part.split(BETWEEN)]


def _joined(path: str) -> bool:
    """Return True if a name joins several tables, and is no file with a + in its own name."""
    return AND in path and not all(os.path.exists(part) for part in path.split(BETWEEN))


def _several(path: str, columns: Columns, within: Read, form: Form | None) -> Iterator[Record]:
    parts = path.split(AND)
    if not all(parts):
        raise DataError(f"{path!r} needs a file on each side of every {AND}, as FIRST{AND}SECOND")
    return chain.from_iterable(_one(part, columns, within, form) for part in parts)


def _one(path: str, columns: Columns, within: Read, form: Form | None) -> Iterator[Record]:
    if BETWEEN in path:
        return _parallel(path, within)
    form = form or _form(path)
    if form == "parquet":
        from regard.data.parquet import records

        return records(path, columns, *within)
    return _jsonl(path, columns, within) if form == "jsonl" else _tsv(path, columns, within)


def _form(path: str) -> Form:
    if path.endswith(".parquet"):
        return "parquet"
    return "jsonl" if path.removesuffix(".gz").endswith((".jsonl", ".json", ".ndjson")) else "tsv"


def _tsv(path: str, columns: Columns, within: Read) -> Iterator[Record]:
    rows = raw_lines(path, *within)
    named = numbered(columns.source) is None or numbered(columns.target) is None
    if named and columns.settings.header is False:
        name = columns.target if numbered(columns.target) is None else columns.source
        raise DataError(f"data.header=false says that {path} has no header, and column {name!r} is a name; give its number")
    named = named or bool(columns.settings.header)
    header = decode_line(*next(rows), within.limit) if named else None
    names = header.text.split("\t") if header else []
    first = _position(columns.source, names, header)
    second = _position(columns.target, names, header, columns.need_target)
    checks = ColumnChecks(path, columns.settings, (first, second), named) if columns.settings.columns else None

    def parse(raw: tuple[bytes, str]) -> Record:
        nonlocal checks
        line = decode_line(*raw, within.limit)
        if not line.text.strip():
            raise DataError(f"{line.where} is empty; fill it in, or leave it out")
        cells = line.text.split("\t")
        if checks is not None and not checks.check(cells, line.where):
            checks = None
        absent = not columns.need_target and (second is None or second >= len(cells) or not cells[second].strip())
        source = _cell(cells, first, line, columns.names[0])
        return record(source, None if absent else _cell(cells, second, line, columns.names[1]), line.where, columns.names)

    records = parse_lines(path, rows, parse)
    first_record = next(records, None)
    if first_record is not None:
        yield first_record
        yield from records
    elif header:
        raise DataError(f"{header.where} is a header, and no record follows it")


def _position(column: str, names: Sequence[str], header: Line | None, need: bool = True) -> int | None:
    """Index of a column, from 0; None for an absent column that is not required."""
    number = numbered(column)
    if number is not None or header is None:
        return number
    if column in names:
        return names.index(column)
    if need:
        raise no_column(column, names, header.where)
    return None


def _cell(cells: Sequence[str], position: int | None, line: Line, side: str) -> str:
    if position is None or position >= len(cells):
        count = f"{len(cells)} column" + "s" * (len(cells) != 1)
        other = f", or give two parallel files as SOURCE{BETWEEN}TARGET" * (side in SIDES)
        raise DataError(
            f"{line.where} has {count}, and the {side} is column {(position or 0) + 1}; put a tab between columns{other}"
        )
    return cells[position]


def rows(path: str, limit: int = LIMIT, bounds: Bounds = Bounds()) -> Iterator[tuple[Row, str]]:
    """Rows of a JSONL file, each with its place."""
    return (_parse_row(line) for line in lines(path, limit, bounds))


def _parse_row(line: Line) -> tuple[Row, str]:
    try:
        row = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        raise DataError(_not_json(line, error)) from error
    if not isinstance(row, (dict, list)):
        raise DataError(f"{line.where} needs a JSON object or list, and is {_kind(row)}")
    return row, line.where


def _jsonl(path: str, columns: Columns, within: Read) -> Iterator[Record]:
    def parse(raw: tuple[bytes, str]) -> Record:
        row, where = _parse_row(decode_line(*raw, within.limit))
        target = text(row, columns.target, where, columns.need_target)
        absent = not columns.need_target and not (target and target.strip())
        return record(text(row, columns.source, where) or "", None if absent else target, where, columns.names)

    return parse_lines(path, raw_lines(path, *within), parse)


def value(row: Row, column: str, where: str, need: bool = True) -> Any:
    """Value of a column in a row; None for an absent column that is not required."""
    values = list(row.values()) if isinstance(row, dict) else row
    number = numbered(column)
    if isinstance(row, dict) and column in row:
        return row[column]
    if number is not None and number < len(values):
        return values[number]
    if need:
        raise no_column(column, list(row) if isinstance(row, dict) else [], where)
    return None


def text(row: Row, column: str, where: str, need: bool = True) -> str | None:
    """The text in one column of a line."""
    cell = value(row, column, where, need)
    if cell is None and not need:
        return None
    if not isinstance(cell, str):
        raise DataError(f"{where} needs text in column {column!r}, and has {_kind(cell)}")
    if SURROGATE.search(cell):
        raise DataError(f"{where} has half a surrogate pair in column {column!r}, which is no character; write it whole")
    return cell


def _parallel(path: str, within: Read) -> Iterator[Record]:
    both = path.split(BETWEEN)
    if len(both) != 2 or not all(both):
        raise DataError(f"{path!r} needs two paths, as SOURCE{BETWEEN}TARGET")
    if both[0] == both[1]:
        raise DataError(f"{path!r} needs two different files")
    pairs = enumerate(zip_longest(raw_lines(both[0], *within), raw_lines(both[1], *within)))

    def parse(raw: tuple[int, tuple[tuple[bytes, str] | None, tuple[bytes, str] | None]]) -> Record:
        number, (first, second) = raw
        if first is None or second is None:
            short, long = both if first is None else both[::-1]
            for _ in pairs:  # its other lines are no more errors
                pass
            raise DataError(f"{short}:{number} is its last line, and {long} goes on; the two need equally many lines")
        source, target = decode_line(*first, within.limit), decode_line(*second, within.limit)
        if not target.text.strip():
            raise DataError(f"{target.where} is empty; a record needs a target")
        return record(source.text, target.text, source.where)

    return parse_lines(path, pairs, parse)


def _not_json(line: Line, error: Exception) -> str:
    if not line.text.strip():
        return f"{line.where} is empty; a record needs a source and a target"
    deep = "it is nested too deep" if isinstance(error, RecursionError) else "it has a number of too many digits"
    reason = f"{error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else deep
    return f"{line.where} is not JSON: {reason}; each line needs to be one object or list"


def _kind(value: Any) -> str:
    names = {
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "text")
