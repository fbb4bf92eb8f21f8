"""The tokens of a model that came from elsewhere, with its own tokenizer or as numbers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from regard.data.special_tokens import BOS, EOS, NAMES, PAD, UNK
from regard.data.text.tokenizers import settings
from regard.data.text.tokenizers.bpe import PRINTABLE
from regard.data.text.tokenizers.token_offsets import Piece, clean
from regard.data.text.tokenizers.vocab_based import SILENT

SPECIAL = (PAD, BOS, EOS, UNK)
BYTE = re.compile("<0x([0-9A-F]{2})>")
"""A byte of a character that has no token, in vocabularies with byte fallback."""


@dataclass(frozen=True)
class Pretrained:
    """Another library's token numbers (ids) behind ours: `ids` has the id of each of our numbers, the special four first.

    BOS is always a copy: what a foreign decoder begins with is its padding or its end, which have numbers of their own. UNK
    is a copy of the padding where there is no such token, and the padding one of the end where the two have one id. `model`
    is a Tokenizer of the tokenizers library, whose template puts what the model expects around a source; its end is ours to
    put. Without one a text is made of ids: "17 4 250".
    """

    ids: tuple[int, ...]
    model: Any = None
    kind: ClassVar[str] = "pretrained"

    @property
    def size(self) -> int:
        """Vocabulary size."""
        return len(self.ids)

    @cached_property
    def numbers(self) -> dict[int, int]:
        """Our number of each id."""
        indices: dict[int, int] = {}
        for number in (EOS, PAD, *range(UNK, len(self.ids))):
            indices.setdefault(self.ids[number], number)
        return indices

    @cached_property
    def table(self) -> tuple[bytes, ...]:
        """The bytes of every number; those of a special one are its name."""
        return (*(name.encode() for name in NAMES), *(self._spelling(token) for token in self.ids[len(NAMES) :]))

    @cached_property
    def continuations(self) -> tuple[bytes, ...]:
        """The bytes that every number writes behind another token, as the tokenizer's decoder joins them.

        A special token writes nothing, nor does an id that the tokenizer lacks.
        """
        if self.model is None:
            return (*[b""] * len(NAMES), *(f" {token}".encode() for token in self.ids[len(NAMES) :]))
        silent = {number for number, token in self.model.get_added_tokens_decoder().items() if token.special}
        known = [number for number, token in enumerate(self.ids) if number >= len(NAMES) and token not in silent]
        known = [number for number in known if self.model.id_to_token(self.ids[number]) is not None]
        written = dict(zip(known, self._continue(known), strict=True))
        return tuple(written.get(number, b"") for number in range(self.size))

    @cached_property
    def drops_first_space(self) -> bool:
        """True if the space that a token begins with is left out where it begins a text."""
        spaced = (
            number
            for number, continuation in enumerate(self.continuations)
            if len(continuation) > 1 and continuation.startswith(b" ")
        )
        first = next(spaced, None)
        return first is not None and not self.decode([first]).startswith(" ")

    def encode_target(self, text: str) -> list[int]:
        """The numbers of a text as a decoder writes it: without what the template puts around a source."""
        if self.model is None:
            return self.encode(text)
        return [self.numbers.get(token, UNK) for token in self.model.encode(clean(text), add_special_tokens=False).ids]

    def normalise(self, text: str) -> str:
        """A text as its tokens write it: in the normal form of the tokenizer, and with the spaces of the text itself."""
        text = clean(text)
        if self.model is None or self.model.normalizer is None:
            return text
        normal: str = self.model.normalizer.normalize_str(text).replace("▁", " ")
        return normal if text.startswith(" ") else normal.removeprefix(" ")

    def encode(self, text: str) -> list[int]:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        if self.model is None:
            return [[self._typed(word) for word in text.split()] for text in texts]
        encodings = self.model.encode_batch([clean(text) for text in texts], add_special_tokens=True)
        return [self._without_end([self.numbers.get(token, UNK) for token in one.ids]) for one in encodings]

    def decode(self, numbers: Iterable[int]) -> str:
        said = [number for number in numbers if number not in SILENT]
        if self.model is None:
            return " ".join(self._name(number) for number in said)
        text: str = self.model.decode([self.ids[number] for number in said], skip_special_tokens=True)
        return text

    def pieces(self, text: str) -> list[Piece]:
        if self.model is None:
            ends = list[int]()
            for word in text.split():
                ends.append(text.index(word, ends[-1] if ends else 0) + len(word))
            return [Piece(word, end - len(word), end) for word, end in zip(text.split(), ends, strict=True)]
        encoding = self.model.encode(clean(text), add_special_tokens=True)
        pairs = zip(encoding.tokens, encoding.offsets, strict=True)
        return [Piece(text[start:end] or token, start, end) for token, (start, end) in pairs][: len(self.encode(text))]

    def shown(self, numbers: Iterable[int]) -> list[str]:
        return [self._name(number) for number in numbers]

    def save(self, directory: Path, name: str) -> list[Path]:
        written = [settings.write(directory, name, self.kind, ids=list(self.ids), model=self.model is not None)]
        if self.model is not None:
            written.append(directory / f"{name}.tokenizer.json")
            written[-1].write_text(self.model.to_str(), encoding="utf-8")
        return written

    @classmethod
    def load(cls, directory: Traversable, name: str) -> "Pretrained":
        """Read what `save` wrote."""
        table, path = settings.read(directory, name), directory / f"{name}.tokenizer.json"
        ids = table.get("ids")
        if (
            not isinstance(ids, list)
            or len(ids) <= len(NAMES)
            or not all(type(token) is int and token >= 0 for token in ids)
        ):
            raise ValueError(f"{directory / name}.json needs the ids of a pretrained tokenizer, numbers from 0 up")
        return cls(tuple(ids), read(path) if table.get("model") is True else None)

    def _typed(self, word: str) -> int:
        """The number of an id as a text; what is none, or is no part of a text, is unknown."""
        number = self.numbers.get(int(word), UNK) if word.isascii() and word.isdecimal() else UNK
        return UNK if number in SPECIAL else number

    def _without_end(self, numbers: list[int]) -> list[int]:
        return numbers[:-1] if numbers[-1:] == [EOS] else numbers

    def _name(self, number: int) -> str:
        if number in SPECIAL:
            return NAMES[number]
        alone = self.ids[number]
        return str(alone) if self.model is None else self.model.decode([alone], skip_special_tokens=False)

    def _spelling(self, token_id: int) -> bytes:
        token = None if self.model is None else self.model.id_to_token(token_id)
        if token is None:
            return f"{token_id} ".encode() if self.model is None else f"<{token_id}>".encode()
        if all(letter in self._letters for letter in token):
            return bytes(self._letters[letter] for letter in token)
        spelt: str = token.replace("▁", " ")
        return spelt.encode()

    def _continue(self, numbers: Sequence[int]) -> list[bytes]:
        """The bytes that these numbers write behind another token."""
        if self._letters:
            return [self.table[number] for number in numbers]
        tokens = [self.model.id_to_token(self.ids[number]) for number in numbers]
        anchor = next((self.ids[number] for number, token in zip(numbers, tokens, strict=True) if _is_plain(token)), None)
        if anchor is None:
            return [self.table[number] for number in numbers]
        before: str = self.model.decode([anchor])
        pairs = self.model.decode_batch([[anchor, self.ids[number]] for number in numbers])
        return [
            bytes([int(byte[1], 16)]) if (byte := BYTE.fullmatch(token)) else pair.removeprefix(before).encode()
            for token, pair in zip(tokens, pairs, strict=True)
        ]

    @cached_property
    def _letters(self) -> dict[str, int]:
        """The bytes that the letters of a token stand for, where it is spelt in bytes."""
        if type(self.model.decoder).__name__ != "ByteLevel":
            return {}
        others = [byte for byte in range(256) if byte not in PRINTABLE]
        return {chr(byte): byte for byte in PRINTABLE} | {chr(256 + place): byte for place, byte in enumerate(others)}


def _is_plain(token: str) -> bool:
    """Return True for a token of letters, with or without the mark of a space before it."""
    return token.removeprefix("▁").isalnum()


def read(path: Traversable) -> Any:
    """The tokenizer in a file of the tokenizers library, which pads and cuts nothing."""
    from tokenizers import Tokenizer

    text = path.read_text(encoding="utf-8")
    try:
        model = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{path} needs to be a tokenizer of the tokenizers library, and is not: {error}") from error
    model.no_padding()
    model.no_truncation()
    return model
