"""Listed: tokens that a vocabulary lists; what it does not list is UNK."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from regard.data.special_tokens import BOS, EOS, PAD
from regard.data.text.tokenizers import settings
from regard.data.text.tokenizers.vocabulary import Vocabulary

SILENT = frozenset((PAD, BOS, EOS))
"""The special tokens that leave nothing in a text."""


class VocabTokenizer(ABC):
    """Base of the tokenizers words and characters."""

    vocabulary: Vocabulary

    @property
    def size(self) -> int:
        """Size of the vocabulary."""
        return len(self.vocabulary)

    @property
    def table(self) -> tuple[bytes, ...]:
        """The bytes of every number; those of a special one are its name."""
        return tuple(self.vocabulary.token(number).encode() for number in range(self.size))

    @abstractmethod
    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, known or not."""

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.numbers(self.tokens(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def write(self, directory: Path, name: str, kind: str, **more: Any) -> list[Path]:
        """Write the vocabulary beside the settings."""
        path = directory / f"{name}.vocabulary.json"
        self.vocabulary.save(path)
        return [settings.write(directory, name, kind, **more), path]

    @staticmethod
    def read(directory: Traversable, name: str) -> Vocabulary:
        """Read that vocabulary."""
        return Vocabulary.load(directory / f"{name}.vocabulary.json")
