"""Tokens of a Hugging Face tokenizer as the text that they cover.

A byte-level tokenizer may cut a character: 汤 becomes two tokens, which it calls æ± and ¤. Both cover 汤, which is shown.
What a token covers is found by decoding one token more at a time, from a place at which the text was whole.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from regard.data.axis import Text
from regard.viewer.io.errors import TraceError

UNFINISHED = "\ufffd"
"""Output of decoders for bytes that are no character yet."""


def covered(ids: Sequence[int], tokenizer: Any = None, lang: str | None = None) -> Text:
    """The tokens with these numbers as an axis; without a tokenizer each is shown as its number."""
    if tokenizer is None:
        return Text.of([str(number) for number in ids], lang=lang)
    tokenizer = plain(tokenizer)
    special = set(tokenizer.all_special_ids)
    places = [place for place, number in enumerate(ids) if number not in special]
    text, spans = _spans([ids[place] for place in places], tokenizer)
    by_place: list[tuple[int, int] | None] = [None] * len(ids)
    for place, span in zip(places, spans, strict=True):
        by_place[place] = span
    pieces = tuple(named(number, tokenizer) for number in ids)
    return Text(pieces, text, tuple(by_place), tuple(sorted(set(range(len(ids))) - set(places))), lang)


def plain(tokenizer: Any) -> Any:
    """The tokenizer itself, where a processor of sound or pictures holds one."""
    inner = tokenizer if hasattr(tokenizer, "convert_ids_to_tokens") else getattr(tokenizer, "tokenizer", None)
    if not hasattr(inner, "convert_ids_to_tokens"):
        raise TraceError(
            f"needs the tokenizer of a transformers model, as AutoTokenizer gives it, got {type(tokenizer).__name__}"
        )
    return inner


def shown(number: int, tokenizer: Any = None) -> str:
    """A token that stands alone, as among candidates: its text, or its name where it has none."""
    if tokenizer is None:
        return str(number)
    if number in plain(tokenizer).all_special_ids:
        return named(number, tokenizer)
    text = _decode([number], plain(tokenizer))
    return named(number, tokenizer) if not text.strip() or UNFINISHED in text else text.strip()


def named(number: int, tokenizer: Any) -> str:
    """The token's own name, but bytes of a cut character as ⟨E6 B1⟩ and those of whole ones as the characters."""
    tokenizer = plain(tokenizer)
    piece = tokenizer.convert_ids_to_tokens(number)
    if piece is None:
        return f"⟨{number}⟩"
    written = str(piece)
    if all(letter.isascii() or letter in "ĠĊĉ▁" for letter in written):
        return written
    text = _decode([number], tokenizer)
    if UNFINISHED not in text and text.strip():
        return written if text.strip() in written else text
    data = [_bytes().get(letter) for letter in written]
    return written if None in data else f"⟨{' '.join(f'{byte:02X}' for byte in data)}⟩"


def _spans(ids: Sequence[int], tokenizer: Any) -> tuple[str, list[tuple[int, int]]]:
    """Decode all tokens to one text, and find the span of characters that each token covers.

    `whole` is the token from which on text is still open, `before` one place to decode from so that the blank between two
    words is kept: decoders drop it in front of the first.
    """
    text, spans = "", []
    before = whole = 0
    settled = 0  # characters of the open text that will not change
    for place in range(len(ids)):
        head, tail = _decode(ids[before:whole], tokenizer), _decode(ids[before : place + 1], tokenizer)
        opened = tail[len(head) :] if tail.startswith(head) else _decode(ids[whole : place + 1], tokenizer)
        firm = opened.rstrip(UNFINISHED)
        while settled < len(firm) and opened[settled] == UNFINISHED:
            settled += 1  # bytes of the tokens before, which never became a character
        last = place == len(ids) - 1
        end = len(opened) if last else len(firm) + (len(firm) < len(opened))
        spans.append(_without_blanks(text + opened, len(text) + min(settled, end), len(text) + end))
        settled = len(firm)
        if last or 0 < len(opened) == len(firm):
            text += opened
            before, whole, settled = whole, place + 1, 0
    return text, spans


def _without_blanks(text: str, first: int, end: int) -> tuple[int, int]:
    """Span without surrounding whitespace, unless it is whitespace alone."""
    inside = text[first:end]
    if not inside.strip():
        return first, end
    return first + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def _decode(ids: Sequence[int], tokenizer: Any) -> str:
    if not ids:
        return ""
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


@cache
def _bytes() -> dict[str, int]:
    """The byte that each letter of a byte-level vocabulary stands for.

    Printable bytes stand for themselves, the others are the letters from U+0100 on, in order: Radford et al. 2019, GPT-2.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + place): byte for place, byte in enumerate(rest)}
