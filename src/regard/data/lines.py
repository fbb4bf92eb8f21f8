"""Lines: the text of a file, of a pipe or of standard input, one line at a time, each with its place."""

import difflib
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

LIMIT = 1_000_000
"""The most characters of a line."""


class DataError(ValueError):
    """The data is not what it should be; the text says what and where."""


class Line(NamedTuple):
    """A line without its end, and where it stands: "train.tsv:17"."""

    text: str
    where: str


@runtime_checkable
class _Stream(Protocol):
    """A file, or what looks like one."""

    def readline(self, size: int = -1, /) -> bytes: ...


def lines(path: str, limit: int = LIMIT) -> Iterator[Line]:
    """The lines of a file, plain or gzipped; "-" is standard input, and a pipe does as well.

    Only a line feed, with or without a carriage return, ends a line. At no time is more in memory than one line.
    """
    name = "stdin" if path == "-" else path
    most = 4 * limit + 8  # bytes: four for each character, a byte order mark, the end
    with ExitStack() as stack:
        stream = _open(path, stack)
        number = 0
        while raw := _next(stream, most, f"{name}:{number + 1}"):
            number += 1
            yield _decode(raw, f"{name}:{number}", most, limit)
    if number == 0:
        raise DataError(f"{name} is empty; it needs at least one line")


def _open(path: str, stack: ExitStack) -> _Stream:
    try:
        stream = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))  # noqa: SIM115
        start = stream.peek(2)[:2] if hasattr(stream, "peek") else b""
    except (OSError, ValueError, AttributeError) as error:  # standard input may be closed, or none
        raise DataError(unreadable(path, error)) from error
    if path.endswith(".gz") or start == b"\x1f\x8b":  # no text in UTF-8 starts so
        return stack.enter_context(gzip.GzipFile(fileobj=stream, mode="rb"))
    return stream


def _next(stream: _Stream, most: int, where: str) -> bytes:
    try:
        return stream.readline(most)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} cannot be read: {error}") from error


def _decode(raw: bytes, where: str, most: int, limit: int) -> Line:
    whole = len(raw) < most
    try:
        text = raw.decode("utf-8") if whole else ""
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} is not UTF-8: byte {error.start + 1} of the line is 0x{raw[error.start]:02x} ({error.reason}); "
            "convert the file to UTF-8"
        ) from error
    text = text.removesuffix("\n").removesuffix("\r")
    if where.endswith(":1"):
        text = text.removeprefix("\ufeff")
    if not whole or len(text) > limit:
        raise DataError(f"{where} has more than {limit:,} characters, the most of a line; split it, or leave it out")
    return Line(text, where)


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file, opened for reading; a pipe would be waited for, and a device never ends."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{path} is a directory, and a file is needed")
        if not stat.S_ISREG(mode):
            raise DataError(f"{path} is {_special(mode)}, and a regular file is needed; copy what it holds into one")
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _special(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def unreadable(path: str, error: Exception) -> str:
    """Why a file cannot be read, and what may have been meant."""
    if isinstance(error, FileNotFoundError):
        folder = Path(path).parent
        others = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        near = difflib.get_close_matches(Path(path).name, others, n=1)
        hint = f"did you mean {folder / near[0]}?" if near else "check the path"
        return f"there is no file {path}; {hint}"
    if isinstance(error, IsADirectoryError):
        return f"{path} is a directory, and a file is needed"
    return f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
