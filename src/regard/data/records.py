"""Records: the rows of a table of any form, and the columns that they are read from."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from regard.config import shortened
from regard.data.header import TableSettings
from regard.errors import DataError

LISTED = 10
"""Bad lines of a table that an error lists."""
Row = TypeVar("Row")
Parsed = TypeVar("Parsed")
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
    settings: TableSettings = TableSettings()


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
        if text is not None and "\0" in text:
            raise DataError(
                f"{where} has a NUL byte in its {side}, which is no text; convert the file to UTF-8, or remove it"
            )
    return Record(source, target, where)


class BadLines:
    """Collector of the errors of a table's bad lines, so that one error names many of them."""

    def __init__(self, path: str):
        self.path, self.count, self.errors = path, 0, list[str]()

    def add(self, error: DataError) -> None:
        """Note the error of a bad line."""
        self.count += 1
        if self.count <= LISTED:
            self.errors.append(str(error))

    def error(self) -> DataError:
        """One error about all bad lines: their number, and the first of them."""
        if self.count == 1:
            return DataError(self.errors[0])
        first = f", the first {LISTED} of them" * (self.count > LISTED)
        return DataError("\n  ".join((f"{self.path} has {self.count:,} bad lines{first}:", *self.errors)))


def parse_lines(path: str, lines: Iterable[Row], parse: Callable[[Row], Parsed]) -> Iterator[Parsed]:
    """Parse the lines of a table; from the first bad one on the others are only checked, and one error names all.

    Standard input may come line by line, and its first bad line is an error at once.
    """
    bad = BadLines(path)
    rows = iter(lines)
    while True:
        try:
            row = next(rows)
            parsed = parse(row)
        except StopIteration:
            break
        except DataError as error:
            if path == "-":
                raise
            bad.add(error)
        else:
            if not bad.count:
                yield parsed
    if bad.count:
        raise bad.error()


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
    columns = ", ".join(shown) or "none with a name"
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {columns}"
    return DataError(f"{where} has no column {column!r}; {hint}")
