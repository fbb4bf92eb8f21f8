"""Unigram language model."""

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.data.text.tokenizers import settings
from regard.data.text.tokenizers.byte_level import LEAST, SPECIAL, ByteLevelTokenizer, check_size, table_of
from regard.data.text.tokenizers.token_offsets import clean

BAR = "▁"
"""Space in SentencePiece. The same character in a text is encoded as its three bytes."""

RESERVED = frozenset(BAR + " \0\t\n\u2047\u2585")
"""Characters that SentencePiece uses for itself while training; in a text all but the space are written as bytes."""

LONGEST = 1_000_000
"""Texts of more bytes than this take no part in the training, to which they would give nothing but time."""


@dataclass(frozen=True)
class Unigram(ByteLevelTokenizer):
    """The likeliest cut of a text, where each piece has a probability learnt from the texts, independent of the others.

        best cut = argmax over x1 .. xn that make up the text of  Σ log p(xi)

    Kudo 2018, https://arxiv.org/abs/1804.10959, as in SentencePiece, with a text left exactly as it is: no normalisation,
    every space kept, none put in front, and rare characters written as their bytes.
    """

    model: Any
    kind: ClassVar[str] = "unigram"

    @classmethod
    def train(cls, texts: Sequence[str], size: int, min_frequency: int = 1) -> "Unigram":
        """Learn pieces from the texts; characters rarer than `min_frequency`, or past half of the room, are bytes."""
        from sentencepiece import SentencePieceTrainer

        check_size(cls.kind, size, LEAST + 2)  # a space, and something that is none
        written = io.BytesIO()
        SentencePieceTrainer.train(
            sentence_iterator=iter(_segments(texts, size, min_frequency)),
            model_writer=written,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            byte_fallback=True,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            max_sentence_length=LONGEST,
            num_threads=1,  # the sums depend on it
            minloglevel=2,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
        )
        return cls(_processor(written.getvalue()))

    @cached_property
    def table(self) -> tuple[bytes, ...]:
        """The bytes of every number."""
        pieces = [(number, self.model.id_to_piece(number)) for number in range(SPECIAL, len(self.model))]
        return table_of(
            bytes([int(piece[3:5], 16)] if self.model.is_byte(number) else piece.replace(BAR, " ").encode())
            for number, piece in pieces
        )

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        cleaned = [clean(text) for text in texts]
        numbers: list[list[int]] = self.model.encode(cleaned, num_threads=1) if cleaned else []
        for place, text in enumerate(cleaned):
            if BAR in text:
                numbers[place] = self._with_bars(text)
        return numbers

    def _with_bars(self, text: str) -> list[int]:
        bar = [self.model.piece_to_id(f"<0x{byte:02X}>") for byte in BAR.encode()]
        first, *rest = self.model.encode(text.split(BAR))
        return list(chain(first, *(bar + word for word in rest)))

    def save(self, directory: Path, name: str) -> list[Path]:
        path = directory / f"{name}.unigram.model"
        path.write_bytes(self.model.serialized_model_proto())
        return [settings.write(directory, name, self.kind), path]

    @classmethod
    def load(cls, directory: Traversable, name: str) -> "Unigram":
        """Read what `save` wrote."""
        path = directory / f"{name}.unigram.model"
        data = path.read_bytes()
        try:
            return cls(_processor(data))
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} needs to be a SentencePiece model, and is not: {error}") from error


def _processor(data: bytes) -> Any:
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_proto=data)


def _segments(texts: Sequence[str], size: int, min_frequency: int) -> list[str]:
    """The texts cut at every character that is to be written as bytes: rare, past half of the room, or reserved.

    A space is never one of them: SentencePiece would write the bytes of BAR. So the last segment always has one.
    """
    counts = Counter(chain.from_iterable(map(clean, texts)))
    often = sorted(counts.keys() - RESERVED, key=lambda character: (-counts[character], character))
    room = max(1, (size - LEAST) // 2 - 1)
    frequent = [character for character in often[:room] if counts[character] >= min_frequency]
    cut = {ord(character): "\n" for character in counts.keys() - {" ", *frequent}}
    parts = [part for text in texts for part in clean(text).translate(cut).split("\n") if part]
    letter = frequent[0] if frequent else "a"
    return [*parts, f"{letter} {letter}"]
