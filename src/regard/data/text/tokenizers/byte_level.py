"""Exact: tokens that are bytes of UTF-8, so that every text can be written and comes back as it was."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from regard.data.special_tokens import NAMES
from regard.data.text.tokenizers.token_offsets import Piece, cover
from regard.data.text.tokenizers.vocab_based import SILENT

SPECIAL = len(NAMES)
LEAST = SPECIAL + 256
"""The size below which not every byte has a number."""


class ByteLevelTokenizer(ABC):
    """Base of the byte-level tokenizers bytes, bpe and unigram."""

    @property
    @abstractmethod
    def table(self) -> tuple[bytes, ...]:
        """The bytes of every number; those of a special one are its name."""

    @abstractmethod
    def encode_all(self, texts: Sequence[str]) -> list[list[int]]: ...

    @property
    def size(self) -> int:
        """Vocabulary size."""
        return len(self.table)

    def encode(self, text: str) -> list[int]:
        return self.encode_all([text])[0]

    def pieces(self, text: str) -> list[Piece]:
        return cover([self.table[number] for number in self.encode(text)])

    def decode(self, numbers: Iterable[int]) -> str:
        return b"".join(self.table[number] for number in numbers if number not in SILENT).decode("utf-8", "replace")

    def shown(self, numbers: Iterable[int]) -> list[str]:
        numbers = list(numbers)
        texts = iter(cover([self.table[number] for number in numbers if number >= SPECIAL]))
        return [next(texts).text if number >= SPECIAL else NAMES[number] for number in numbers]


def table_of(tokens: Iterable[bytes]) -> tuple[bytes, ...]:
    """The table of some tokens, the special ones put in front."""
    return (*(name.encode() for name in NAMES), *tokens)


def check_size(kind: str, size: int, least: int = LEAST) -> None:
    """Raise where there is no room for every byte."""
    if size < least:
        raise ValueError(
            f"{kind} needs a vocabulary of at least {least} ({SPECIAL} special tokens, 256 bytes), got {size}; "
            "make it larger, or take characters"
        )
