"""Protocol of a tokenizer."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from regard.data.text.tokenizers.token_offsets import Piece


@runtime_checkable
class Tokenizer(Protocol):
    """Text <-> token numbers. Each kind also has the class methods `train(texts, size, min_frequency)` and `load`."""

    kind: ClassVar[str]

    @property
    def size(self) -> int:
        """Vocabulary size, with the four special tokens."""
        ...

    @property
    def table(self) -> tuple[bytes, ...]:
        """The spelling of every number in bytes; that of a special one is its name."""
        ...

    def encode(self, text: str) -> list[int]:
        """The numbers of a text; of the special ones UNK alone may be among them."""
        ...

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts, faster than one by one."""
        ...

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of some numbers; PAD, BOS and EOS are silent, UNK is shown by its name."""
        ...

    def pieces(self, text: str) -> list[Piece]:
        """Offsets: one piece of the text for each token of `encode(text)`."""
        ...

    def shown(self, numbers: Iterable[int]) -> list[str]:
        """The text that each number stands for among the others, special ones by their names."""
        ...

    def save(self, directory: Path, name: str) -> list[Path]:
        """Write it; the files written."""
        ...
