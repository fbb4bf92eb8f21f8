"""Codec of a language model: texts as token ids, and sources that are empty."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.config import Data
from regard.data.codec import Corpus, OverLong
from regard.data.records import Record
from regard.data.special_tokens import UNK
from regard.data.text.codec import Example, TextCodec
from regard.data.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class LanguageCodec(TextCodec):
    """Tokenizer of texts, with empty sources.

    The source of a record is the beginning of a text, which the search continues and no model reads.
    """

    @classmethod
    def wrap(cls, tokenizer: Tokenizer, data: Data, lowercase: bool) -> "LanguageCodec":
        """Codec with a tokenizer, and the limits of a config."""
        if data.max_target_length < 2:
            raise ValueError("max_target_length needs at least 2: a token and the end")
        limits = data.max_source_length, data.max_target_length
        return cls(tokenizer, tokenizer, lowercase, *limits, data.over_long)

    def encode_all(self, records: Iterable[Record], over_long: OverLong | None = None) -> Corpus:
        """Examples of records, all with an empty source."""
        return super().encode_all([record._replace(source="") for record in records], over_long)

    def budget(self, examples: Sequence[Example], count: int) -> int:
        """Number of tokens of a batch of about `count` examples of median length."""
        lengths = sorted(self.length(example) for example in examples)
        return count * max(1, lengths[len(lengths) // 2])

    def is_known(self, record: Record) -> bool:
        """False where the beginning of a text has a token that no text of the model can have."""
        return UNK not in self.target.encode(self.prepare(record.source))

    def fit_all(self, records: Sequence[Record]) -> list[bool]:
        """Which beginnings are known, and shorter than the longest text."""
        short = [len(self.target.encode(self.prepare(record.source))) < self.max_target_length for record in records]
        return [fits and self.is_known(record) for fits, record in zip(short, records, strict=True)]
