"""Incremental input: the text of standard input as it arrives, before the end of a line."""

import codecs
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from regard.data.lines import LIMIT
from regard.errors import DataError

END = "\n"
ROOM = 1 << 16
"""Most bytes of one read."""


@runtime_checkable
class Stream(Protocol):
    """Protocol of standard input: `read1` blocks for one byte, and returns all that are available."""

    def read1(self, size: int = -1, /) -> bytes: ...


def read_partial_lines(stream: Stream, limit: int = LIMIT) -> Iterator[Iterator[str]]:
    """Pieces of each line as they arrive; the rest of a line is discarded when the next one is requested.

    A line is what `lines` takes for one: a line feed ends it, with or without a carriage return, and a byte order mark is no
    part of the first.
    """
    pieces = _limited(_pieces(stream), limit)
    first = next(pieces, None)
    if first is None:
        raise DataError("stdin is empty; it needs at least one line")
    while first is not None:
        line = _line(first, pieces)
        yield line
        for _ in line:
            pass
        first = next(pieces, None)


def _line(piece: str, pieces: Iterator[str]) -> Iterator[str]:
    """Yield chunks of standard input up to the end of the line."""
    while piece != END:
        yield piece
        piece = next(pieces, END)


def _limited(pieces: Iterator[str], limit: int) -> Iterator[str]:
    length, number = 0, 1
    for piece in pieces:
        length, number = (0, number + 1) if piece == END else (length + len(piece), number)
        if length > limit:
            raise DataError(f"stdin:{number} has more than {limit:,} characters, the most of a line; split it")
        yield piece


def _pieces(stream: Stream) -> Iterator[str]:
    """Pieces of a line, none empty, and END where one ends. A carriage return waits for what follows it."""
    carriage_return, has_text = "", False
    for text in _texts(stream):
        *lines, last = (carriage_return + text).split(END)
        for line in lines:
            yield from filter(None, (line.removesuffix("\r"), END))
        piece = last.removesuffix("\r")
        carriage_return, has_text = last[len(piece) :], bool(piece) or (has_text and not lines)
        if piece:
            yield piece
    if carriage_return and not has_text:
        yield END  # a last line of a carriage return alone


def _texts(stream: Stream) -> Iterator[str]:
    """Decoded text as it arrives, in whole characters."""
    decoder, ends, first = codecs.getincrementaldecoder("utf-8")(), 0, True
    while True:
        raw = stream.read1(ROOM)
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            whole = error.object[: error.start].decode()
            yield whole
            raise DataError(
                f"stdin:{ends + whole.count(END) + 1} is not UTF-8: 0x{error.object[error.start]:02x} ({error.reason}); "
                "convert it to UTF-8"
            ) from error
        ends += text.count(END)
        if text:
            yield text.removeprefix("\ufeff") if first else text
            first = False
        if not raw:
            return
