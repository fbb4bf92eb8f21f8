"""Lines: the text of a file, of a pipe or of standard input, one line at a time, each with its place."""

import difflib
import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from regard.errors import DataError
from regard.inputs import open_stream

LIMIT = 1_000_000
"""The most characters of a line."""


RATIO = 100
"""Bytes that each byte of a compressed file may unpack to: text comes to 3 to 20, a bomb to 1,000."""

LEAST_BYTES = 1 << 25
"""Bytes that any compressed file may unpack to."""

LEAST_RECORDS = 500_000
"""Records that any compressed file may hold."""


class Bounds(NamedTuple):
    """Bounds of an unpacked file, in bytes and in records; a file that is not compressed has none.

    None: 100 bytes and 1 record for each byte of the file, and 32 MiB and 500,000 records in any case. Text is compressed
    to a tenth, and a bomb to a thousandth: a corpus of any size is read, and a bomb is not. A number overrules that.
    """

    bytes: int | None = None
    records: int | None = None

    def room(self, path: str, packed: int, unpacked: int, records: int) -> tuple[int, int]:
        """The bytes and records that so many compressed bytes may hold; raises where there are more of them already."""
        most_bytes = max(LEAST_BYTES, RATIO * packed) if self.bytes is None else self.bytes
        most_records = max(LEAST_RECORDS, packed) if self.records is None else self.records
        if unpacked > most_bytes:
            raise DataError(_bomb(path, f"{most_bytes:,} bytes", "data.max_bytes"))
        if records > most_records:
            raise DataError(_bomb(path, f"{most_records:,} records", "data.max_records"))
        return most_bytes, most_records


def bounds(data: object) -> Bounds:
    """The bounds that the settings of data ask for."""
    return Bounds(getattr(data, "max_bytes", None), getattr(data, "max_records", None))


def _bomb(path: str, most: str, setting: str) -> str:
    return (
        f"{path} is compressed and unpacks to more than {most}, the most that a file of its size may hold unless "
        f"{setting} allows more; raise {setting} where a command takes it, or give it uncompressed"
    )


class Line(NamedTuple):
    """A line without its end, and where it stands: "train.tsv:17"."""

    text: str
    where: str


@runtime_checkable
class _Stream(Protocol):
    """A file, or what looks like one."""

    def readline(self, size: int = -1, /) -> bytes: ...


class _Counted:
    """A stream that counts the bytes that are read of it."""

    def __init__(self, stream: Any):
        self.stream, self.count = stream, 0

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self.stream.read(size)
        self.count += len(data)
        return data


def lines(path: str, limit: int = LIMIT, bounds: Bounds = Bounds()) -> Iterator[Line]:
    """The lines of a file, plain or gzipped; "-" is standard input, and a pipe does as well.

    Only a line feed, with or without a carriage return, ends a line. At no time is more in memory than one line.
    """
    for data, where in raw_lines(path, limit, bounds):
        yield decode_line(data, where, limit)


def raw_lines(path: str, limit: int = LIMIT, bounds: Bounds = Bounds()) -> Iterator[tuple[bytes, str]]:
    """The lines of a file as bytes, each with its place; one that is far too long is an error, as its rest is no line."""
    name = "stdin" if path == "-" else path
    most = _most_bytes(limit)
    with ExitStack() as stack:
        stream, packed = _open(path, stack)
        number = unpacked = 0
        room = (0, 0)
        while raw := _next(stream, most, f"{name}:{number + 1}"):
            number += 1
            if packed is not None:
                unpacked += len(raw)
                if unpacked > room[0] or number > room[1]:
                    room = bounds.room(name, packed.count, unpacked, number)
            if len(raw) >= most:
                raise _too_long(f"{name}:{number}", limit)
            yield raw, f"{name}:{number}"
    if number == 0:
        raise DataError(f"{name} is empty; it needs at least one line")


def _most_bytes(limit: int) -> int:
    """Bytes of a line of so many characters: four for each, a byte order mark, the end."""
    return 4 * limit + 8


def _too_long(where: str, limit: int) -> DataError:
    return DataError(f"{where} has more than {limit:,} characters, the most of a line; split it, or leave it out")


def _open(path: str, stack: ExitStack) -> tuple[_Stream, _Counted | None]:
    """Open a file of lines; of a compressed one also the counter of its own bytes."""
    try:
        stream = sys.stdin.buffer if path == "-" else stack.enter_context(open_stream(path))
        start = stream.peek(2)[:2] if hasattr(stream, "peek") else b""
    except (OSError, ValueError, AttributeError) as error:  # standard input may be closed, or none
        raise DataError(unreadable(path, error)) from error
    if path.endswith(".gz") or start == b"\x1f\x8b":  # no text in UTF-8 starts so
        packed = _Counted(stream)
        return stack.enter_context(gzip.GzipFile(fileobj=packed, mode="rb")), packed  # type: ignore[call-overload]
    return stream, None


def _next(stream: _Stream, most: int, where: str) -> bytes:
    try:
        return stream.readline(most)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} cannot be read: {error}") from error


def decode_line(raw: bytes, where: str, limit: int = LIMIT) -> Line:
    """Decode a line; raises where it is not UTF-8, or has more than `limit` characters."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} is not UTF-8: byte {error.start + 1} of the line is 0x{raw[error.start]:02x} ({error.reason}); "
            "convert the file to UTF-8"
        ) from error
    text = text.removesuffix("\n").removesuffix("\r")
    if where.endswith(":1"):
        text = text.removeprefix("\ufeff")
    if len(text) > limit:
        raise _too_long(where, limit)
    return Line(text, where)


def unreadable(path: str, error: Exception) -> str:
    """Reason why a file cannot be read, with a near name."""
    if isinstance(error, FileNotFoundError):
        folder = Path(path).parent
        others = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        near = difflib.get_close_matches(Path(path).name, others, n=1)
        hint = f"did you mean {folder / near[0]}?" if near else "check the path"
        return f"there is no file {path}; {hint}"
    if isinstance(error, IsADirectoryError):
        return f"{path} is a directory, and a file is needed"
    return f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
