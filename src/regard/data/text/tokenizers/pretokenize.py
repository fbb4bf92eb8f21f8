"""Spacing: cut a text at spaces, at punctuation and between Chinese characters, and put it together again."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from regard.data.text.tokenizers.token_offsets import Piece

JOIN, SPACE = "￭", "▁"
"""Marks in front of a token: no space before it where one is usual, and a space where none is usual."""

CLOSING = frozenset(".,!?;:)]}%’”…。，、！？；：）】》〉」』％")
OPENING = frozenset("([{“‘¿¡（【《〈「『")
MARKS = (".", ",", "!", "?", ";", ":", "。", "，", "、", "！", "？", "；", "：")
IDEOGRAPHIC = (
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3041, 0x30FF), (0x3105, 0x312F),
    (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
    (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip
"""Han characters, kana and bopomofo: scripts that write no spaces, each character of which is a token."""

SHORT = 32
"""Up to this many characters, what stands between spaces is remembered once it is cut."""


class _Shapes(dict[int, str]):
    """The shape of each character, found when it is first met.

    s space, w word, m combining mark, c Chinese or kana, p punctuation or symbol, x one of JOIN and SPACE.
    """

    def __missing__(self, code: int) -> str:
        self[code] = shape = find_shape(chr(code))
        return shape


_SHAPES = _Shapes()
_PIECE = re.compile("x|pm*|cm*|[wm]+")


def split(text: str) -> list[Piece]:
    """Runs of letters and digits, every symbol, every Chinese character; each keeps the combining marks that follow it."""
    return [
        Piece(text[match.start() : match.end()], match.start(), match.end())
        for match in _PIECE.finditer(text.translate(_SHAPES))
    ]


def chunks(text: str) -> list[Piece]:
    """Chunks between spaces."""
    return [Piece(match.group(), match.start(), match.end()) for match in re.finditer(r"\S+", text)]


def mark(text: str) -> list[str]:
    """The pieces of a text as tokens that remember where spaces were.

    JOIN or SPACE stands in front of each whose spacing is not the usual one.
    """
    tokens: list[str] = []
    for chunk in text.split():
        first, *rest = _chunk(chunk) if len(chunk) <= SHORT else _mark(chunk)
        tokens.append(SPACE + first if tokens and clings(tokens[-1], first) else first)
        tokens += rest
    return tokens


def join(tokens: Iterable[str]) -> str:
    """The text that `mark` made the tokens from, its runs of space narrowed to one."""
    parts: list[str] = []
    before = ""
    for token in tokens:
        marked = len(token) > 1 and token[0] in (JOIN, SPACE)
        text = token[1:] if marked else token
        apart = token[0] == SPACE if marked else not clings(before, text)
        parts += [" ", text] if apart and parts else [text]
        before = text
    return "".join(parts)


def bare(token: str) -> str:
    """A token without its mark: what of it is text."""
    return token[1:] if len(token) > 1 and token[0] in (JOIN, SPACE) else token


def clings(left: str, right: str) -> bool:
    """Return True if two neighbours are usually written without a space."""
    if not left or not right:
        return True
    return right[0] in CLOSING or left[-1] in OPENING or _SHAPES[ord(right[0])] == "c" or _SHAPES[ord(left[-1])] == "c"


def tokenized(texts: Iterable[str]) -> bool:
    """Return True if a text has spaces around its punctuation already.

    True when punctuation stands alone somewhere, and for every 20 marks alone there is at most one at the end of a word
    ("a man in a blue shirt ."; an abbreviation may keep its stop).
    """
    alone = clinging = 0
    for text in texts:
        for chunk in text.split():
            if chunk.endswith(MARKS):
                alone += len(chunk) == 1
                clinging += len(chunk) > 1
    return alone > 0 and 20 * clinging <= alone


def _mark(chunk: str) -> tuple[str, ...]:
    """The tokens of a text without spaces."""
    pieces = [piece.text for piece in split(chunk)]
    return (*pieces[:1], *(right if clings(left, right) else JOIN + right for left, right in pairwise(pieces)))


_chunk = lru_cache(maxsize=1 << 16)(_mark)


def find_shape(character: str) -> str:
    """The shape of a character: s space, w word, m combining mark, c ideograph, p symbol, x a mark of spacing."""
    if character.isspace():
        return "s"
    if character in (JOIN, SPACE):
        return "x"
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf" or (category == "Sk" and not character.isascii()):
        return "m"
    if any(first <= ord(character) <= last for first, last in IDEOGRAPHIC) and category[0] != "P":
        return "c"
    return "p" if category[0] in "PS" and category != "Pc" else "w"
