"""Pictures and the texts that belong to them: how both are read, and which is which where one is there several times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.data.codec import Corpus, OverLong
from regard.data.image.codec import ImageTextCodec, Render
from regard.data.image.reading import place
from regard.data.image.types import ImageExample
from regard.data.records import Record
from regard.data.special_tokens import EOS, UNK


@dataclass(frozen=True)
class PairCodec(ImageTextCodec):
    """As for captions; each example has two labels, the number of its picture and that of its text.

    A picture that is there with several texts has one number, and so has a text of several pictures: those pairs belong
    together too, although they stand on different lines.
    """

    @property
    def max_source_length(self) -> int:
        """The most tokens of a text that is asked, its end included."""
        return self.max_target_length

    def encode_all(
        self, records: Iterable[Record], over_long: OverLong | None = None, renders: Sequence[Render] | None = None
    ) -> Corpus:
        """Many records, whose pictures are files, and all of them there, unless `renders` makes them."""
        found = super().encode_all(records, over_long, renders)
        if any(each.record.target is None for each in found.examples):
            return found
        pictures, texts = dict[str, int](), dict[str, int]()
        examples = []
        for each in found.examples:
            name = each.record.source if renders is not None else str(place(each.record))
            numbers = pictures.setdefault(name, len(pictures)), texts.setdefault(self.same(each.record), len(texts))
            examples.append(each._replace(labels=list(numbers)))
        return found._replace(examples=examples)

    def same(self, record: Record) -> str:
        """What is equal for texts that are one text to a model."""
        return " ".join(self.prepare(record.target or "").split())

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as numbers, EOS at the end of each; what is too long is cut."""
        encoded = self.target.encode_all([self.prepare(text) for text in texts])
        return [[*each[: self.max_target_length - 1], EOS] for each in encoded]

    def familiar(self, text: str) -> bool:
        """Whether a text is not longer than what the model reads, and it knows something in it."""
        tokens = self.target.encode(self.prepare(text))
        return len(tokens) < self.max_target_length and any(token != UNK for token in tokens)


def pairs(examples: Sequence[ImageExample]) -> list[tuple[int, int]]:
    """The numbers of the picture and the text of each example."""
    found = []
    for each in examples:
        if each.labels is None or len(each.labels) != 2:
            raise ValueError("a pair needs a picture and a text to learn or to be judged by, and this one has no text")
        found.append((each.labels[0], each.labels[1]))
    return found
