"""Token numbers as an axis of text: what each is called, and what it covers of the text that they make together.

A source that is a picture is an axis of the places of its map.
"""

from collections.abc import Sequence
from typing import Any

from regard.data.axis import Image, Text
from regard.data.image.codec import ImageTextCodec
from regard.data.image.types import ImageExample
from regard.data.special_tokens import BOS, NAMES
from regard.data.text.codec import Example, TextCodec
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.offsets import SILENT, Span, real, spans
from regard.viewer.record.image_axis import shown
from regard.viewer.record.language import guess


class Spelling:
    """One side of a codec, whose table of tokens is made once."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.table = self.tokenizer.table

    def name(self, number: int) -> str:
        """What a token is called; bytes that are a part of a character only are told as numbers."""
        if number < len(NAMES):
            return NAMES[number]
        return self.table[number].decode("utf-8", "backslashreplace")

    def shown(self, number: int) -> str:
        """What a token by itself is shown as: its text, or its name where that is no whole character."""
        [text] = self.tokenizer.shown([number])
        return self.name(number) if "\ufffd" in text or not text else text

    def axis(self, numbers: Sequence[int], text: str, covered: Sequence[Span]) -> Text:
        """Tokens by their names; PAD, BOS and EOS stand for no text."""
        special = tuple(place for place, number in enumerate(numbers) if number in SILENT)
        return Text(tuple(map(self.name, numbers)), text, tuple(covered), special, guess(text))

    def spans(self, numbers: Sequence[int], text: str) -> list[Span]:
        """What each token covers of the text that all of them make; None for one that covers nothing."""
        return spans(self.tokenizer, numbers, text, self.table)


class Words:
    """The axes of a codec's sources and targets."""

    def __init__(self, codec: TextCodec | ImageTextCodec):
        self.codec: Any = codec
        self.target = Spelling(codec.target)
        self.source = None if isinstance(codec, ImageTextCodec) else Spelling(codec.source)

    def read(self, example: Example | ImageExample) -> Text | Image:
        """The tokens of a source, and what they cover of it; or a picture, and the places of its map."""
        if self.source is None or isinstance(example, ImageExample):
            return shown(self.codec.read_image(example), self.codec.stride, self.codec.whole)
        text = self.codec.prepare(example.record.source)
        covered = [real(piece.start, piece.end) for piece in self.codec.source_pieces(example.record)]
        return self.source.axis(example.source, text, covered)

    def answered(self, numbers: Sequence[int]) -> Text:
        """The tokens of an answer, and what they cover of the text that it is."""
        text = self.target.tokenizer.decode(numbers)
        return self.target.axis(numbers, text, self.target.spans(numbers, text))


def written(target: Text) -> Text:
    """What a decoder has written when it writes each token: the same one place later, behind BOS."""
    special = (0, *(place + 1 for place in target.special if place + 1 < len(target)))
    return Text((NAMES[BOS], *target.pieces[:-1]), target.text, (None, *target.spans[:-1]), special, target.lang)
