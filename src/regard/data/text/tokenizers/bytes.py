"""Bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar

from regard.data.text.tokenizers import settings
from regard.data.text.tokenizers.byte_level import LEAST, SPECIAL, ByteLevelTokenizer, table_of
from regard.data.text.tokenizers.token_offsets import clean

TABLE = table_of(bytes([byte]) for byte in range(256))


@dataclass(frozen=True)
class Bytes(ByteLevelTokenizer):
    """The bytes of UTF-8: 256 tokens, whatever the texts."""

    kind: ClassVar[str] = "bytes"

    @classmethod
    def train(cls, texts: Sequence[str], size: int = LEAST, min_frequency: int = 1) -> "Bytes":
        """Nothing to learn: neither the texts nor the size matter."""
        return cls()

    @property
    def table(self) -> tuple[bytes, ...]:
        return TABLE

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [[byte + SPECIAL for byte in clean(text).encode()] for text in texts]

    def save(self, directory: Path, name: str) -> list[Path]:
        return [settings.write(directory, name, self.kind)]

    @classmethod
    def load(cls, directory: Traversable, name: str) -> "Bytes":
        """There is nothing to read."""
        return cls()
