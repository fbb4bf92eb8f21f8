"""Records: the rows of a table of any form, and the columns that they are read from."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from regard.config import shortened
from regard.errors import DataError

SIDES = ("source", "target")
"""Names of the two sides of a record, unless a task has other words."""


class Record(NamedTuple):
    """A source, its target where there is one, and the place of both in their file."""

    source: str
    target: str | None
    where: str
    links: tuple[tuple[int, int], ...] = ()
    """Alignment links, pairs of positions of a source token and a target token, where the table has them."""


class Columns(NamedTuple):
    """Columns to read, whether there has to be a target, and the names of the two in an error."""

    source: str
    target: str
    need_target: bool
    names: tuple[str, str] = SIDES


def input_record(text: str, number: int = 1) -> Record:
    """Record of an input as it was typed: a text or the path of a file, without a target."""
    return Record(text, None, f"input:{number}")


def locate(record: Record) -> Path:
    """Path of the file that a record names: in a table it is relative to the table's folder."""
    return Path(record.where.rpartition(":")[0]).parent / record.source


def record(source: str, target: str | None, where: str, names: tuple[str, str] = SIDES) -> Record:
    """A record whose sides are not empty."""
    for side, text in zip(names, (source, target), strict=True):
        if text is not None and not text.strip():
            raise DataError(f"{where} has an empty {side}; fill it in, or leave the line out")
    return Record(source, target, where)


def numbered(column: str) -> int | None:
    """A column's number, counted from 0; None for a name."""
    if not (column.isascii() and column.isdecimal() and len(column) < 10):
        return None
    if int(column) == 0:
        raise DataError("columns are counted from 1, and column 0 was asked for")
    return int(column) - 1


def no_column(column: str, names: Sequence[str], where: str) -> DataError:
    """The error for a column that is not there, with the nearest that is."""
    shown = [shortened(name) for name in names[:20]]
    near = difflib.get_close_matches(column, shown, n=1)
    there = ", ".join(shown) or "none with a name"
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {there}"
    return DataError(f"{where} has no column {column!r}; {hint}")
