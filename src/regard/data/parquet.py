"""Parquet: records from columns of text, a few thousand rows at a time.

Apache Parquet, https://parquet.apache.org. It is read through pyarrow, which comes with the extra regard[parquet].
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from regard.data.lines import Bounds, unreadable
from regard.data.records import Columns, Record, no_column, numbered, parse_lines, record
from regard.errors import DataError
from regard.extras import describe_install
from regard.inputs import open_regular

ROWS = 4096
"""Maximum number of rows in memory."""


def records(path: str, columns: Columns, limit: int, bounds: Bounds = Bounds()) -> Iterator[Record]:
    """The records of a file, in the order of its rows; a place is the path and the row from 1.

    A number is the so-manieth column, unless a column is called so. `limit` is the most characters of a text.
    """
    with open_parquet(path) as file:
        wanted = [_column(file.schema_arrow, columns.source, path), None]
        wanted[1] = _column(file.schema_arrow, columns.target, path, columns.need_target)
        if not file.metadata.num_rows:
            raise DataError(f"{path} is empty")
        packed, unpacked = os.path.getsize(path), 0
        room, _ = bounds.room(path, packed, _claimed(file, wanted), file.metadata.num_rows)

        def bounded() -> Iterator[tuple[int, tuple[Any, Any]]]:
            for number, values in enumerate(_rows(file, wanted, path), 1):
                yield number, values
                if unpacked > room:  # a dictionary repeats a text without any bytes
                    bounds.room(path, packed, unpacked, number)

        def parse(row: tuple[int, tuple[Any, Any]]) -> Record:
            nonlocal unpacked
            number, (source, target) = row
            where = f"{path}:{number}"
            text = _text(target, columns.target, where, limit, columns.need_target)
            absent = not columns.need_target and not (text and text.strip())
            first = _text(source, columns.source, where, limit) or ""
            unpacked += len(first) + len(text or "")
            return record(first, None if absent else text, where, columns.names)

        yield from parse_lines(path, bounded(), parse)


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """A Parquet file, open for reading; what is no whole one is a DataError."""
    try:
        from pyarrow import ArrowException  # type: ignore[import-untyped]
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]
    except ImportError as error:
        raise DataError(
            f"{path} needs pyarrow, which is not installed: {describe_install('parquet')}, or give the data as TSV or JSONL"
        ) from error
    try:
        with open_regular(path) as stream, ParquetFile(stream) as file:
            again = _repeating(file)
            if not again:
                yield file
                return
        with open_regular(path) as stream, ParquetFile(stream, read_dictionary=again) as file:
            yield file
    except ArrowException as error:
        raise DataError(f"{path} is no whole Parquet file: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise DataError(unreadable(path, error)) from error


def _column(schema: Any, column: str, path: str, need: bool = True) -> str | None:
    """The name of a column; None where there is none and none is needed."""
    names, number = list(schema.names), numbered(column)
    if column not in names and number is not None and number < len(names):
        column = names[number]
    if column not in names and not need:
        return None
    if column not in names:
        raise no_column(column, names, path)
    if names.count(column) > 1:
        raise DataError(f"{path} has {names.count(column)} columns called {column!r}; give each a name of its own")
    return column


def _rows(file: Any, wanted: list[str | None], path: str) -> Iterator[tuple[Any, Any]]:
    """The two values of each row, as pyarrow holds them; None for a column that is not there."""
    named = [name for name in wanted if name is not None]
    for name in named:
        if not _is_text(kind := file.schema_arrow.field(name).type):
            raise DataError(f"{path}:1 needs text in column {name!r}, and the whole column is {kind}")
    for batch in file.iter_batches(ROWS, columns=list(dict.fromkeys(named))):
        sides = [[None] * batch.num_rows if name is None else batch.column(name) for name in wanted]
        yield from zip(*sides, strict=True)


def _repeating(file: Any) -> list[str]:
    """The columns that lie in the file as a dictionary, and stay one: each row would be a copy of its text."""
    chunks = [
        file.metadata.row_group(group).column(column)
        for group in range(file.metadata.num_row_groups)
        for column in range(file.metadata.num_columns)
    ]
    names = {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}
    return list({field.name for field in file.schema_arrow if field.name in names and _is_text(field.type)})


def _claimed(file: Any, wanted: list[str | None]) -> int:
    """Bytes that the pages of columns unpack to, as the file says."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in wanted)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _text(value: Any, column: str, where: str, limit: int, need: bool = True) -> str | None:
    """The text of one value."""
    try:
        text = None if value is None else value.as_py()
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 in column {column!r}: {error.reason}; write the file anew") from error
    if text is None and need:
        raise DataError(f"{where} needs text in column {column!r}, and has null")
    if text is not None and len(text) > limit:
        raise DataError(f"{where} has more than {limit:,} characters, the most of a text; split it, or leave it out")
    return text
