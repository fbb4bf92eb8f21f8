"""Axis of a text: the name of each token, and the part of the text that it covers."""

from collections.abc import Sequence

from regard.data.axis import Text
from regard.data.special_tokens import NAMES
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.offsets import SILENT, Span, spans

SCRIPTS = {
    "ja": (("\u3041", "\u30ff"), ("\u31f0", "\u31ff"), ("\uff66", "\uff9f")),
    "ko": (("\uac00", "\ud7a3"), ("\u1100", "\u11ff"), ("\u3131", "\u318e")),
    "zh": (("\u4e00", "\u9fff"), ("\u3400", "\u4dbf"), ("\uf900", "\ufaff"), ("\U00020000", "\U000323af")),
    "ar": (("\u0620", "\u06ff"), ("\u0750", "\u077f"), ("\ufb50", "\ufdff"), ("\ufe70", "\ufefc")),
    "he": (("\u05d0", "\u05f4"), ("\ufb1d", "\ufb4f")),
    "th": (("\u0e01", "\u0e5b"),),
}
"""Ranges of characters by language. Kana and Hangul come before Han, which Japanese and Korean share with Chinese."""


class TokenAxes:
    """Axes of the texts of one tokenizer, whose table of tokens is computed once."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.table = tokenizer.table

    def name(self, number: int) -> str:
        """Name of a token; bytes that are a part of a character are escaped."""
        if number < len(NAMES):
            return NAMES[number]
        return self.table[number].decode("utf-8", "backslashreplace")

    def label(self, number: int) -> str:
        """Label of a token by itself: its text, or its name where that is no whole character."""
        [text] = self.tokenizer.shown([number])
        return self.name(number) if "\ufffd" in text or not text else text

    def axis(self, numbers: Sequence[int], text: str, covered: Sequence[Span]) -> Text:
        """Axis of tokens that cover these spans of a text; PAD, BOS and EOS stand for no text."""
        special = tuple(place for place, number in enumerate(numbers) if number in SILENT)
        return Text(tuple(map(self.name, numbers)), text, tuple(covered), special, guess_language(text))

    def decoded(self, numbers: Sequence[int]) -> Text:
        """Axis of tokens over the text that they decode to."""
        text = self.tokenizer.decode(numbers)
        return self.axis(numbers, text, self.spans(numbers, text))

    def spans(self, numbers: Sequence[int], text: str) -> list[Span]:
        """Span of the decoded text that each token covers; None for one that covers nothing."""
        return spans(self.tokenizer, numbers, text, self.table)


def guess_language(text: str) -> str | None:
    """BCP 47 tag of the language that the script of a text tells, or None: the script of Chinese does not tell which."""
    for language, ranges in SCRIPTS.items():
        if any(first <= letter <= last for letter in text for first, last in ranges):
            return language
    return None
