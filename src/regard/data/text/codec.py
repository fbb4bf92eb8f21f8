"""Text: records <-> token numbers, for both sides of a task at once."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from regard.config import Data
from regard.data.batch import Padded, pad
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.special_tokens import EOS, NAMES, UNK
from regard.data.table import DataError, Record
from regard.data.text import tokenizers
from regard.data.text.tokenizers import Piece, Tokenizer

if TYPE_CHECKING:
    from regard.data.loader import SequenceLoader

FORMAT = 1


class Example(NamedTuple):
    """A record as token numbers, EOS at the end of each side."""

    source: list[int]
    target: list[int] | None
    record: Record


@dataclass(frozen=True)
class TextCodec:
    """A tokenizer for sources and one for targets, the same one where the vocabulary is joint.

    `max_source_length` and `max_target_length` count EOS. `decode` takes what a decoder gave.
    """

    kind: ClassVar[str] = "text"
    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer",
        "target_tokenizer",
        "vocab_size",
        "joint_vocab",
        "min_frequency",
        "lowercase",
    )
    """The settings of data that make it."""

    source: Tokenizer
    target: Tokenizer
    lowercase: bool = False
    max_source_length: int = 256
    max_target_length: int = 256
    over_long: OverLong = "drop"

    @classmethod
    def fit(
        cls,
        records: Sequence[Record],
        data: Data = Data(),
        source_tokenizer: str | None = None,
        target_tokenizer: str | None = None,
    ) -> "TextCodec":
        """Train the tokenizers on the records. A task whose sides differ names their kinds, over `data.tokenizer`."""
        kinds = source_tokenizer or data.tokenizer, target_tokenizer or data.tokenizer
        if data.joint_vocab and kinds[0] != kinds[1]:
            raise ValueError(f"a joint vocabulary needs one kind of tokens, got {kinds[0]} and {kinds[1]}")
        if min(data.max_source_length, data.max_target_length) < 2:
            raise ValueError("max_source_length and max_target_length need at least 2: a token and the end")
        change = str.lower if data.lowercase else str
        sources = [change(record.source) for record in records]
        targets = [change(record.target) for record in records if record.target is not None]
        if not sources or len(targets) < len(sources):
            raise DataError(f"tokens are learnt from pairs, got {len(sources)} sources and {len(targets)} targets")
        size, least = data.vocab_size, data.min_frequency
        source = tokenizers.train(kinds[0], sources + targets if data.joint_vocab else sources, size, least)
        target = source if data.joint_vocab else tokenizers.train(kinds[1], targets, size, least)
        return cls(source, target, data.lowercase, data.max_source_length, data.max_target_length, data.over_long)

    def fitted(self, data: Data) -> "TextCodec":
        """The same tokens, with the limits of this config."""
        limits: dict[str, Any] = {
            name: getattr(data, name) for name in ("max_source_length", "max_target_length", "over_long")
        }
        return replace(self, **limits)

    @property
    def joint(self) -> bool:
        """Whether both sides share their numbers."""
        return self.source is self.target

    def encode(self, record: Record) -> Example:
        """One record; it is never dropped, and what is too long is cut."""
        example: Example = self.encode_all([record], "truncate").examples[0]
        return example

    def encode_all(self, records: Iterable[Record], over_long: OverLong | None = None) -> Corpus:
        """Many records. `over_long` overrides the codec's own rule: an evaluation must answer every record, and so cuts."""
        records = list(records)
        sources = self.source.encode_all([self.prepare(record.source) for record in records])
        texts = [self.prepare(record.target) for record in records if record.target is not None]
        targets = iter(self.target.encode_all(texts))
        drop = (over_long or self.over_long) == "drop"
        examples: list[Example] = []
        cut_sources = cut_targets = 0
        for record, source in zip(records, sources, strict=True):
            target = None if record.target is None else next(targets)
            long_source = len(source) >= self.max_source_length
            long_target = target is not None and len(target) >= self.max_target_length
            if drop and (long_source or long_target):
                continue
            cut_sources += long_source
            cut_targets += long_target
            source = [*source[: self.max_source_length - 1], EOS]
            examples.append(
                Example(source, None if target is None else [*target[: self.max_target_length - 1], EOS], record)
            )
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), cut_sources, cut_targets, dropped, unknown(examples)))

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of an output, up to its first EOS."""
        return self.target.decode(until_end(numbers))

    def source_pieces(self, record: Record) -> list[Piece]:
        """What each number of an encoded source covers of the prepared text; the end covers nothing, and shows its name."""
        text = self.prepare(record.source)
        pieces = self.source.pieces(text)[: self.max_source_length - 1]
        return [*pieces, Piece(NAMES[EOS], len(text), len(text))]

    def target_pieces(self, numbers: Iterable[int]) -> list[str]:
        """The text that each number of an output stands for, up to its first EOS and with it."""
        numbers = list(numbers)
        inner = until_end(numbers)
        return self.target.shown(numbers[: len(inner) + 1])

    def counterparts(self) -> list[int]:
        """For each number of a source the number of a target with the same spelling; -1 where none has it.

        The end is the end, and what is unknown stays so; PAD and BOS stand in no source.
        """
        first = len(NAMES)
        numbers = {spelling: number for number, spelling in enumerate(self.target.table[first:], first)}
        special = {EOS: EOS, UNK: UNK}
        spelt = [numbers.get(spelling, -1) for spelling in self.source.table[first:]]
        return [*(special.get(number, -1) for number in range(first)), *spelt]

    def alone(self, example: Example) -> Padded:
        """One source, as a model reads it."""
        return pad([example.source])

    def loader(self, examples: Sequence[Example], budget: int) -> "SequenceLoader":
        """Batches to evaluate with, of at most so many tokens."""
        from regard.data.loader import SequenceLoader  # it reads examples

        return SequenceLoader(examples, budget, shuffle=False)

    def budget(self, examples: Sequence[Example], count: int) -> int:
        """The tokens of a batch of so many sentences of middling length."""
        lengths = sorted(len(example.source) for example in examples)
        return count * max(1, lengths[len(lengths) // 2])

    def pieces(self, example: Example) -> list[str]:
        """What each token of a source is called."""
        return [piece.text for piece in self.source_pieces(example.record)]

    def knows(self, record: Record) -> bool:
        """Whether any token of a source is one that the model has seen; without one, its answer would be a guess."""
        return any(token not in (UNK, EOS) for token in self.encode(record).source)

    def reads(self, record: Record) -> bool:
        """Whether a source is not longer than what the model reads, and it knows something in it."""
        tokens = self.source.encode(self.prepare(record.source))
        return len(tokens) < self.max_source_length and any(token not in (UNK, EOS) for token in tokens)

    def short(self, records: Sequence[Record]) -> list[int]:
        """The places of the records whose source is not longer than what the model reads."""
        tokens = self.source.encode_all([self.prepare(record.source) for record in records])
        return [place for place, each in enumerate(tokens) if len(each) < self.max_source_length]

    def prepare(self, text: str) -> str:
        """The text that is tokenized: in lower case, when the codec asks for that."""
        return text.lower() if self.lowercase else text

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizers' own files; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        names = ("joint",) if self.joint else ("source", "target")
        settings: dict[str, Any] = {"format": FORMAT, "joint": self.joint}
        settings |= {
            name: getattr(self, name) for name in ("lowercase", "max_source_length", "max_target_length", "over_long")
        }
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        sides = zip(names, (self.source, self.target), strict=False)
        return [path, *(file for name, side in sides for file in side.save(directory, name))]

    @classmethod
    def load(cls, directory: Traversable) -> "TextCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
            _check(settings)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a text codec, format {FORMAT}: {error}") from error
        first, second = ("joint", "joint") if settings["joint"] else ("source", "target")
        source = tokenizers.load(directory, first)
        target = source if first == second else tokenizers.load(directory, second)
        values = {name: settings[name] for name in ("lowercase", "max_source_length", "max_target_length", "over_long")}
        return cls(source, target, **values)


def unknown(examples: Sequence[Example]) -> float:
    """The share of UNK among the tokens of both sides, EOS aside."""
    sides = [side for example in examples for side in (example.source, example.target or [EOS])]
    return sum(side.count(UNK) for side in sides) / max(1, sum(len(side) - 1 for side in sides))


def until_end(numbers: Iterable[int]) -> list[int]:
    """The numbers before the first EOS."""
    numbers = list(numbers)
    return numbers[: numbers.index(EOS)] if EOS in numbers else numbers


def _check(settings: Any) -> None:
    kinds = {
        "format": int,
        "joint": bool,
        "lowercase": bool,
        "max_source_length": int,
        "max_target_length": int,
        "over_long": str,
    }
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise ValueError("it is of another format")
    if wrong := [name for name, kind in kinds.items() if type(settings.get(name)) is not kind]:
        raise ValueError(f"{wrong[0]} is missing or of the wrong kind")
    if settings["over_long"] not in ("truncate", "drop"):
        raise ValueError(f"over_long is {settings['over_long']!r}, and needs to be truncate or drop")
