"""Characters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import ClassVar

from regard.data.text.tokenizers.token_offsets import Piece, clean
from regard.data.text.tokenizers.vocab_based import SILENT, VocabTokenizer
from regard.data.text.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class Characters(VocabTokenizer):
    """Code points, spaces among them: a letter and the accent combined with it are two."""

    vocabulary: Vocabulary
    kind: ClassVar[str] = "characters"

    @classmethod
    def train(cls, texts: Sequence[str], size: int, min_frequency: int = 1) -> "Characters":
        """The most frequent characters of the texts."""
        return cls(Vocabulary.count(Counter(chain.from_iterable(map(clean, texts))), size, min_frequency))

    def tokens(self, text: str) -> list[str]:
        return list(clean(text))

    def pieces(self, text: str) -> list[Piece]:
        return [Piece(character, start, start + 1) for start, character in enumerate(clean(text))]

    def decode(self, numbers: Iterable[int]) -> str:
        return "".join(self.vocabulary.token(number) for number in numbers if number not in SILENT)

    def shown(self, numbers: Iterable[int]) -> list[str]:
        return [self.vocabulary.token(number) for number in numbers]

    def save(self, directory: Path, name: str) -> list[Path]:
        return self.write(directory, name, self.kind)

    @classmethod
    def load(cls, directory: Traversable, name: str) -> "Characters":
        """Read what `save` wrote."""
        return cls(cls.read(directory, name))
