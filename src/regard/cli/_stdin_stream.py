"""Lines that still arrive: the text of standard input as it comes, before anybody has ended the line."""

import codecs
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from regard.data.lines import LIMIT
from regard.errors import DataError

END = "\n"
ROOM = 1 << 16
"""The most bytes that are taken at once."""


@runtime_checkable
class Stream(Protocol):
    """Standard input, or what looks like it: `read1` waits for one byte, and gives all that are there."""

    def read1(self, size: int = -1, /) -> bytes: ...


def spoken(stream: Stream, limit: int = LIMIT) -> Iterator[Iterator[str]]:
    """The pieces of each line as they come; what nobody takes of a line is let go when the next is asked for.

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
    """What comes before the end of the line."""
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
    held, begun = "", False
    for text in _texts(stream):
        *lines, last = (held + text).split(END)
        for line in lines:
            yield from filter(None, (line.removesuffix("\r"), END))
        piece = last.removesuffix("\r")
        held, begun = last[len(piece) :], bool(piece) or (begun and not lines)
        if piece:
            yield piece
    if held and not begun:
        yield END  # a last line of nothing but that


def _texts(stream: Stream) -> Iterator[str]:
    """What has come, as far as it is whole characters."""
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
