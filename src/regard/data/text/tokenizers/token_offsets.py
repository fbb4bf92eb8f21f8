"""Pieces: what of a text each token covers."""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

SURROGATE = re.compile("[\ud800-\udfff]")


class Piece(NamedTuple):
    """Surface text of a token, from `start` to `end` of the whole."""

    text: str
    start: int
    end: int


def clean(text: str) -> str:
    """The text with every half of a surrogate pair, which is no character and has no UTF-8, replaced by U+FFFD."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def cover(parts: Sequence[bytes]) -> list[Piece]:
    """Spans of strings of bytes in the text that they form together.

    A part that begins or ends inside a character covers the whole of it, so neighbours may share one. Where the whole is
    not UTF-8, each part is read for itself.
    """
    data = b"".join(parts)
    ends = list(accumulate((len(part) for part in parts), initial=0))
    if data.isascii():  # each byte is a character
        text = data.decode("ascii")
        return [Piece(text[start:end], start, end) for start, end in pairwise(ends)]
    begun = list(accumulate((byte & 0xC0 != 0x80 for byte in data), initial=0))  # characters begun before each byte
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        alone = [part.decode("utf-8", "replace") for part in parts]
        places = list(accumulate((len(text) for text in alone), initial=0))
        return [Piece(*piece) for piece in zip(alone, places, places[1:], strict=False)]
    spans = [(begun[min(first + 1, last)] - (first < last), begun[last]) for first, last in pairwise(ends)]
    return [Piece(text[start:end], start, end) for start, end in spans]
