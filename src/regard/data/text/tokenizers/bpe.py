"""Byte pair encoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from regard.data.text.tokenizers import settings
from regard.data.text.tokenizers.byte_level import SPECIAL, ByteLevelTokenizer, check_size, table_of
from regard.data.text.tokenizers.token_offsets import clean

PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))
"""The bytes that the library spells as the character of the same number; the others, in order, are spelt from 256 on."""


@dataclass(frozen=True)
class Bpe(ByteLevelTokenizer):
    """Bytes that often stand together become one token, the most frequent pair first; never across two words.

    Sennrich, Haddow and Birch 2016, https://arxiv.org/abs/1508.07909
    Unlike the paper it starts from bytes, not characters, so nothing is unknown. A space belongs to the word after it.
    """

    model: Any
    kind: ClassVar[str] = "bpe"

    @classmethod
    def train(cls, texts: Sequence[str], size: int, min_frequency: int = 1) -> "Bpe":
        """Merges learnt from the texts; a pair seen less than `min_frequency` times is left as it is."""
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        check_size(cls.kind, size)
        model = Tokenizer(models.BPE())
        model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=size - SPECIAL,
            min_frequency=min_frequency,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=[],
            show_progress=False,
        )
        model.train_from_iterator(map(clean, texts), trainer)
        return cls(model)

    @cached_property
    def table(self) -> tuple[bytes, ...]:
        """The bytes of every number."""
        others = [byte for byte in range(256) if byte not in PRINTABLE]
        spelt = {chr(byte): byte for byte in PRINTABLE} | {chr(256 + place): byte for place, byte in enumerate(others)}
        tokens = [self.model.id_to_token(number) for number in range(self.model.get_vocab_size())]
        return table_of(bytes(spelt[letter] for letter in token) for token in tokens)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts, each distinct word once: no token crosses a space, so that the words of a text are concatenated."""
        parts = [_parts(clean(text)) for text in texts]
        distinct = list(dict.fromkeys(chain.from_iterable(parts)))
        encodings = self.model.encode_batch_fast(distinct, add_special_tokens=False)
        numbers = {
            part: [number + SPECIAL for number in encoding.ids] for part, encoding in zip(distinct, encodings, strict=True)
        }
        return [[number for part in word for number in numbers[part]] for word in parts]

    def save(self, directory: Path, name: str) -> list[Path]:
        path = directory / f"{name}.bpe.json"
        path.write_text(self.model.to_str(), encoding="utf-8")
        return [settings.write(directory, name, self.kind), path]

    @classmethod
    def load(cls, directory: Traversable, name: str) -> "Bpe":
        """Read what `save` wrote."""
        from tokenizers import Tokenizer

        path = directory / f"{name}.bpe.json"
        text = path.read_text(encoding="utf-8")
        try:
            return cls(Tokenizer.from_str(text))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{path} needs to be a tokenizer of the tokenizers library, and is not: {error}") from error


def _parts(text: str) -> list[str]:
    """Words, each with the space before it; a text with other space than single blanks between words stays whole."""
    first, *rest = text.split(" ")
    return [first, *(" " + word for word in rest)] if " ".join(text.split()) == text else [text]
