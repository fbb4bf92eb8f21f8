"""Tables: records of a source and a target, from TSV, JSONL or two parallel files.

How a path is spelt says what it is, and a .gz behind any of them is undone:

    pairs.tsv, -           columns between tabs, taken as they stand (no quoting); "-" is standard input
    pairs.jsonl            one JSON object, or list, on each line (also .json, .ndjson)
    train.de::train.en     two files with equally many lines, line by line a source and its target

A column is a name or a number from 1. As soon as one of the two is a name, the first line of a TSV file is its header; in
JSONL a number means the so-manieth value of the line.
"""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from regard.data.lines import LIMIT, DataError, Line, lines

__all__ = ["LIMIT", "DataError", "Record", "read"]

BETWEEN = "::"
SURROGATE = re.compile("[\ud800-\udfff]")

Form = Literal["tsv", "jsonl"]


class Record(NamedTuple):
    """A source, its target where there is one, and the place of both in their file."""

    source: str
    target: str | None
    where: str


class Columns(NamedTuple):
    """Which columns are wanted, and whether there has to be a target."""

    source: str
    target: str
    need_target: bool


def read(
    path: str | Path,
    source: str = "1",
    target: str = "2",
    need_target: bool = True,
    *,
    limit: int = LIMIT,
    form: Form | None = None,
) -> Iterator[Record]:
    """The records of a file, one at a time; `form` overrides what the path's extension says.

    Anything wrong is a DataError with its place. Without `need_target` a record may lack its target.
    """
    place = str(path)
    columns = Columns(source, target, need_target)
    if BETWEEN in place:
        return _parallel(place, limit)
    if (form or _form(place)) == "jsonl":
        return _jsonl(place, columns, limit)
    return _tsv(place, columns, limit)


def _form(path: str) -> Form:
    return "jsonl" if path.removesuffix(".gz").endswith((".jsonl", ".json", ".ndjson")) else "tsv"


def _tsv(path: str, columns: Columns, limit: int) -> Iterator[Record]:
    rows = lines(path, limit)
    named = _number(columns.source) is None or _number(columns.target) is None
    header = next(rows) if named else None
    names = header.text.split("\t") if header else []
    first = _position(columns.source, names, header)
    second = _position(columns.target, names, header, columns.need_target)
    last = None
    for last in rows:
        if not last.text.strip():
            raise DataError(f"{last.where} is empty; fill it in, or leave it out")
        cells = last.text.split("\t")
        absent = not columns.need_target and (second is None or second >= len(cells) or not cells[second].strip())
        yield _record(
            _cell(cells, first, last, "source"), None if absent else _cell(cells, second, last, "target"), last.where
        )
    if header and last is None:
        raise DataError(f"{header.where} is a header, and no record follows it")


def _position(column: str, names: Sequence[str], header: Line | None, need: bool = True) -> int | None:
    """Where a column stands, from 0; None where there is none and none is needed."""
    number = _number(column)
    if number is not None or header is None:
        return number
    if column in names:
        return names.index(column)
    if need:
        raise DataError(_no_column(column, names, header.where))
    return None


def _cell(cells: Sequence[str], position: int | None, line: Line, side: str) -> str:
    if position is None or position >= len(cells):
        count = f"{len(cells)} column" + "s" * (len(cells) != 1)
        raise DataError(
            f"{line.where} has {count}, and the {side} is column {(position or 0) + 1}; put a tab between columns, "
            f"or give two parallel files as SOURCE{BETWEEN}TARGET"
        )
    return cells[position]


def _jsonl(path: str, columns: Columns, limit: int) -> Iterator[Record]:
    for line in lines(path, limit):
        try:
            row = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            raise DataError(_not_json(line, error)) from error
        if not isinstance(row, (dict, list)):
            raise DataError(f"{line.where} needs a JSON object or list, and is {_kind(row)}")
        target = _value(row, columns.target, line.where, columns.need_target)
        absent = not columns.need_target and not (target and target.strip())
        yield _record(_value(row, columns.source, line.where) or "", None if absent else target, line.where)


def _value(row: dict[str, Any] | list[Any], column: str, where: str, need: bool = True) -> str | None:
    """The text in one column of a line."""
    values = list(row.values()) if isinstance(row, dict) else row
    number = _number(column)
    if isinstance(row, dict) and column in row:
        value = row[column]
    elif number is not None and number < len(values):
        value = values[number]
    elif need:
        raise DataError(_no_column(column, list(row) if isinstance(row, dict) else [], where))
    else:
        return None
    if value is None and not need:
        return None
    if not isinstance(value, str):
        raise DataError(f"{where} needs text in column {column!r}, and has {_kind(value)}")
    if SURROGATE.search(value):
        raise DataError(f"{where} has half a surrogate pair in column {column!r}, which is no character; write it whole")
    return value


def _parallel(path: str, limit: int) -> Iterator[Record]:
    both = path.split(BETWEEN)
    if len(both) != 2 or not all(both):
        raise DataError(f"{path!r} needs two paths, as SOURCE{BETWEEN}TARGET")
    if both[0] == both[1]:
        raise DataError(f"{path!r} needs two different files")
    pairs = zip_longest(lines(both[0], limit), lines(both[1], limit))
    for number, (source, target) in enumerate(pairs):
        if source is None or target is None:
            short, long = both if source is None else both[::-1]
            raise DataError(f"{short}:{number} is its last line, and {long} goes on; the two need equally many lines")
        if not target.text.strip():
            raise DataError(f"{target.where} is empty; a record needs a target")
        yield _record(source.text, target.text, source.where)


def _record(source: str, target: str | None, where: str) -> Record:
    for side, text in (("source", source), ("target", target)):
        if text is not None and not text.strip():
            raise DataError(f"{where} has an empty {side}; fill it in, or leave the line out")
    return Record(source, target, where)


def _number(column: str) -> int | None:
    """A column's number, counted from 0; None for a name."""
    if not (column.isascii() and column.isdecimal() and len(column) < 10):
        return None
    if int(column) == 0:
        raise DataError("columns are counted from 1, and column 0 was asked for")
    return int(column) - 1


def _no_column(column: str, names: Sequence[str], where: str) -> str:
    near = difflib.get_close_matches(column, names, n=1)
    there = ", ".join(names[:20]) or "none with a name"
    return f"{where} has no column {column!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are: {there}")


def _not_json(line: Line, error: Exception) -> str:
    if not line.text.strip():
        return f"{line.where} is empty; a record needs a source and a target"
    reason = f"{error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
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
