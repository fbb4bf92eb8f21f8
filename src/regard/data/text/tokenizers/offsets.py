"""Spans: what each token of an output covers of the text that all of them make."""

from collections.abc import Sequence

from regard.data.special_tokens import BOS, EOS, PAD
from regard.data.text.tokenizers.token_offsets import cover
from regard.data.text.tokenizers.types import Tokenizer

Span = tuple[int, int] | None
SILENT = (PAD, BOS, EOS)


def spans(tokenizer: Tokenizer, numbers: Sequence[int], text: str, table: Sequence[bytes] | None = None) -> list[Span]:
    """Span of each token in `text`, which is `tokenizer.decode(numbers)`; None for one that covers nothing.

    Tokens that are bytes cover what their bytes make, a character in several tokens each of these. Any others cover what
    the text has grown by when they are added, blanks aside. Whoever asks often keeps the tokenizer's `table`.
    """
    table = tokenizer.table if table is None else table
    parts = [table[number] for number in numbers if number not in SILENT]
    if b"".join(parts).decode("utf-8", "replace") == text:
        offsets = iter([(piece.start, piece.end) for piece in cover(parts)])
        return [None if number in SILENT else real(*next(offsets)) for number in numbers]
    ends = [_common(tokenizer.decode(numbers[: place + 1]), text) for place in range(len(numbers))]
    grown = zip([0, *ends], ends, strict=False)
    return [
        None if number in SILENT else _trimmed(text, *arguments) for number, arguments in zip(numbers, grown, strict=True)
    ]


def real(start: int, end: int) -> Span:
    """A stretch of text, or None where it is empty."""
    return (start, end) if start < end else None


def _common(left: str, right: str) -> int:
    """Length of the common prefix of two texts."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(left), len(right)))


def _trimmed(text: str, start: int, end: int) -> Span:
    """A stretch without the blanks at its ends, unless it is nothing else."""
    inner = text[start:end].strip()
    if not inner:
        return real(start, end)
    start = text.index(inner, start)
    return start, start + len(inner)
