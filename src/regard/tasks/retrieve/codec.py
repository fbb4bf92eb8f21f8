"""Codec of picture-text pairs: preprocessing of both, and numbers that identify equal pictures and equal texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.data.codec import Corpus, OverLong
from regard.data.image.codec import ImageTextCodec, Renderer
from regard.data.image.types import ImageExample
from regard.data.records import Record, locate
from regard.data.special_tokens import EOS, UNK


@dataclass(frozen=True)
class PairCodec(ImageTextCodec):
    """Codec of captions whose examples have two labels, the number of the picture and that of the text.

    A picture with several texts has one number, and so has a text of several pictures: such pairs are positives as well,
    although they are on different lines.
    """

    @property
    def max_source_length(self) -> int:
        """Most tokens of a text query, EOS included."""
        return self.max_target_length

    def encode_all(
        self, records: Iterable[Record], over_long: OverLong | None = None, renderers: Sequence[Renderer] | None = None
    ) -> Corpus:
        """Encode records whose pictures are existing files or, with `renderers`, are rendered on access."""
        corpus = super().encode_all(records, over_long, renderers)
        if any(example.record.target is None for example in corpus.examples):
            return corpus
        pictures, texts = dict[str, int](), dict[str, int]()
        examples = []
        for example in corpus.examples:
            name = example.record.source if renderers is not None else str(locate(example.record))
            text = self.normalise_text(example.record)
            numbers = pictures.setdefault(name, len(pictures)), texts.setdefault(text, len(texts))
            examples.append(example._replace(labels=list(numbers)))
        return corpus._replace(examples=examples)

    def normalise_text(self, record: Record) -> str:
        """The text as the model distinguishes it: prepared, with single spaces."""
        return " ".join(self.prepare(record.target or "").split())

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts, EOS at the end of each; one that is too long is truncated."""
        encoded = self.target.encode_all([self.prepare(text) for text in texts])
        return [[*tokens[: self.max_target_length - 1], EOS] for tokens in encoded]

    def knows_token(self, text: str) -> bool:
        """True for a text that has a token other than UNK."""
        return any(token != UNK for token in self.target.encode(self.prepare(text)))

    def familiar(self, text: str) -> bool:
        """True for a text that fits the model and has a token other than UNK."""
        tokens = self.target.encode(self.prepare(text))
        return len(tokens) < self.max_target_length and any(token != UNK for token in tokens)


def pairs(examples: Sequence[ImageExample]) -> list[tuple[int, int]]:
    """The numbers of the picture and the text of each example."""
    numbers = []
    for example in examples:
        if example.labels is None or len(example.labels) != 2:
            raise ValueError("a pair needs a picture and a text, and this example has no text")
        numbers.append((example.labels[0], example.labels[1]))
    return numbers
