"""Codec of text: records <-> token ids, for both sides of a task at once."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch

from regard.config import Data
from regard.data.batch import Padded, pad, pad_present
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.feedback import TokenFeedback
from regard.data.modality import WritableFile
from regard.data.records import Record, input_record
from regard.data.special_tokens import EOS, NAMES, NO_TOKEN, UNK
from regard.data.table import DataError
from regard.data.text import tokenizers
from regard.data.text.copying import CopyTable, bracket, extend_tokenizer
from regard.data.text.tokenizers import Piece, Tokenizer
from regard.data.text.tokenizers.byte_level import ByteLevelTokenizer
from regard.data.text.tokenizers.offsets import real, spans

if TYPE_CHECKING:  # guided alignment needs no NumPy
    from regard.data.axis import Text
    from regard.data.loader import SequenceLoader
    from regard.data.text.axis import TokenAxes

FORMAT = 1
TURN = "⏎"
"""Mark between the turns of a dialogue."""
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", TURN)
"""Ends of tokens that end a sentence."""


class Example(NamedTuple):
    """A record as token ids, EOS at the end of each side."""

    source: list[int]
    target: list[int] | None
    record: Record
    copies: list[int] | None = None
    """Target token that each position of the source would copy, where the model copies."""
    words: tuple[str, ...] = ()
    """Words of the source by place, which numbers behind the target's vocabulary stand for."""


@dataclass(frozen=True)
class TextCodec:
    """A tokenizer for sources and one for targets, the same one where the vocabulary is joint.

    `max_source_length` and `max_target_length` count EOS.
    """

    kind: ClassVar[str] = "text"
    reads_files: ClassVar[bool] = False
    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer",
        "target_tokenizer",
        "vocab_size",
        "joint_vocab",
        "min_frequency",
        "lowercase",
    )
    """Settings of `data` that are fixed once it is fitted."""
    feedback: ClassVar[TokenFeedback] = TokenFeedback()

    source: Tokenizer
    target: Tokenizer
    lowercase: bool = False
    max_source_length: int = 256
    max_target_length: int = 256
    over_long: OverLong = "drop"
    copies: bool = False
    """Sources come with the target token that each position would copy."""

    @classmethod
    def fit(
        cls,
        records: Sequence[Record],
        data: Data = Data(),
        source_tokenizer: str | None = None,
        target_tokenizer: str | None = None,
        copies: bool = False,
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
        size, min_frequency = data.vocab_size, data.min_frequency
        source = tokenizers.train(kinds[0], sources + targets if data.joint_vocab else sources, size, min_frequency)
        target = source if data.joint_vocab else tokenizers.train(kinds[1], targets, size, min_frequency)
        limits = data.max_source_length, data.max_target_length
        return cls(source, target, data.lowercase, *limits, data.over_long, copies)

    def adapt(self, data: Data) -> "TextCodec":
        """Codec of the same tokens, with the limits of this config."""
        limits: dict[str, Any] = {
            name: getattr(data, name) for name in ("max_source_length", "max_target_length", "over_long")
        }
        return replace(self, **limits)

    @property
    def joint(self) -> bool:
        """True if both sides share their tokens."""
        return self.source is self.target

    def read(self, text: str, number: int = 1) -> Record:
        """Record of a text as it was typed."""
        return input_record(text, number)

    def encode(self, record: Record) -> Example:
        """Example of one record; it is never dropped, and what is too long is cut."""
        example: Example = self.encode_all([record], "truncate").examples[0]
        return example

    def encode_all(self, records: Iterable[Record], over_long: OverLong | None = None) -> Corpus:
        """Examples of records. `over_long` overrides the codec's rule: an evaluation answers every record, and so cuts."""
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
            encoded = Example(source, None if target is None else [*target[: self.max_target_length - 1], EOS], record)
            examples.append(self.copying.extend(encoded, self.prepare) if self.copies else encoded)
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), cut_sources, cut_targets, dropped, unknown(examples)))

    def encode_target(self, record: Record) -> list[int] | None:
        """Token ids of a record's target with EOS, cut where it is too long; None where it has none."""
        if record.target is None:
            return None
        return [*self.target.encode(self.prepare(record.target))[: self.max_target_length - 1], EOS]

    def length(self, example: Example) -> int:
        """Number of tokens on the longer side."""
        return max(len(example.source), len(example.target or ()))

    def collate(self, examples: Sequence[Example]) -> Padded:
        """Sources of examples, padded to one tensor."""
        source = pad([example.source for example in examples])
        if not self.copies:
            return source
        return source._replace(copies=pad([example.copies or [] for example in examples], NO_TOKEN).data)

    def collate_target(self, examples: Sequence[Example]) -> Padded | None:
        """Targets of examples, padded to one tensor; None where they have none."""
        return pad_present([example.target for example in examples])

    def decode(self, numbers: Iterable[int]) -> str:
        """Text of an output, up to its first EOS; words that only its source knows are shown by their places."""
        numbers = until_end(numbers)
        if self.copies and (last := max(numbers, default=0)) >= self.target.size:
            return self.extend([f"<copy {place}>" for place in range(last + 1 - self.target.size)]).decode(numbers)
        return self.target.decode(numbers)

    def extend(self, words: Sequence[str]) -> "TextCodec":
        """Codec whose target vocabulary is extended by the words of one source, to decode what was copied from it."""
        return replace(self, target=extend_tokenizer(self.target, words))

    def mark_copies(self, numbers: Sequence[int], copies: Sequence[tuple[int, int]]) -> str:
        """Text of an output with copied tokens in brackets, by their places in the output and in the source."""
        return bracket(self.decode(numbers), spans(self.target, numbers, self.decode(numbers)), copies)

    @cached_property
    def copying(self) -> CopyTable:
        """Table of what the tokens of a source copy."""
        return CopyTable(self.source, self.target, self.counterparts())

    def write(self, prediction: str, file: WritableFile) -> None:
        """Write a text as one line."""
        file.write(f"{prediction}\n")

    def source_pieces(self, record: Record) -> list[Piece]:
        """Part of the prepared text that each token of a source covers; EOS covers nothing, and shows its name."""
        text = self.prepare(record.source)
        pieces = self.source.pieces(text)[: self.max_source_length - 1]
        return [*pieces, Piece(NAMES[EOS], len(text), len(text))]

    def target_pieces(self, numbers: Iterable[int]) -> list[str]:
        """Text of each token of an output, up to its first EOS and with it."""
        numbers = list(numbers)
        inner = until_end(numbers)
        return self.target.shown(numbers[: len(inner) + 1])

    def counterparts(self) -> list[int]:
        """Target token with the same spelling for each source token; -1 where none has it.

        EOS is EOS and UNK is UNK; PAD and BOS stand in no source.
        """
        first = len(NAMES)
        numbers = {spelling: number for number, spelling in enumerate(self.target.table[first:], first)}
        special = {EOS: EOS, UNK: UNK}
        spelt = [numbers.get(spelling, -1) for spelling in self.source.table[first:]]
        return [*(special.get(number, -1) for number in range(first)), *spelt]

    def sentence_ends(self) -> list[int]:
        """Source tokens that end a sentence or a turn of a dialogue, for an encoder that reads sentences."""
        texts = (spelling.decode("utf-8", "replace").strip() for spelling in self.source.table)
        return [number for number, text in enumerate(texts) if text.endswith(SENTENCE_ENDS)]

    def loader(self, examples: Sequence[Example], budget: int) -> "SequenceLoader":
        """Batches of an evaluation, each of at most so many tokens."""
        from regard.data.loader import SequenceLoader  # it reads examples

        return SequenceLoader(examples, budget, shuffle=False)

    def budget(self, examples: Sequence[Example], count: int) -> int:
        """Number of tokens of a batch of about `count` examples of median length."""
        lengths = sorted(len(example.source) for example in examples)
        return count * max(1, lengths[len(lengths) // 2])

    def pieces(self, example: Example) -> list[str]:
        """Label of each token of a source; bytes that are not cut are read from the tokens, without tokenizing again."""
        if isinstance(self.source, ByteLevelTokenizer) and len(example.source) < self.max_source_length:
            return self.source.shown(example.source)
        return [piece.text for piece in self.source_pieces(example.record)]

    def grid(self, example: Example) -> None:
        """None: a text has no rows and columns."""
        return

    def axis(self, example: Example) -> "Text":
        """Axis of an attention's keys: the tokens of a source, and the part of its text that each covers."""
        covered = [real(piece.start, piece.end) for piece in self.source_pieces(example.record)]
        return self.source_axes.axis(example.source, self.prepare(example.record.source), covered)

    def target_axis(self, numbers: Sequence[int]) -> "Text":
        """Axis of an output: its tokens, and the part of the decoded text that each covers."""
        return self.target_axes.decoded(numbers)

    @cached_property
    def source_axes(self) -> "TokenAxes":
        """Axes of sources, with the table of their tokens."""
        from regard.data.text.axis import TokenAxes  # axes need NumPy

        return TokenAxes(self.source)

    @cached_property
    def target_axes(self) -> "TokenAxes":
        """Axes of outputs, with the table of their tokens."""
        from regard.data.text.axis import TokenAxes  # axes need NumPy

        return TokenAxes(self.target)

    @property
    def stream_obstacle(self) -> str | None:
        """Reason why sources cannot be encoded before they have ended, or None."""
        from regard.data.text.streaming import find_obstacle  # it reads the codec

        return find_obstacle(self)

    def stream(self, pieces: Iterable[str]) -> Iterator[list[int]]:
        """Token ids of a source that arrives in pieces, each list as soon as no later piece can change it."""
        from regard.data.text.streaming import stream_token_ids  # it reads the codec

        return stream_token_ids(self, pieces)

    def encode_stable(self, text: str) -> list[int]:
        """Token ids at the beginning of a text that no later text can change."""
        from regard.data.text.streaming import encode_stable_tokens  # it reads the codec

        return encode_stable_tokens(self, text)

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Padded:
        """Random tokens, rows of these lengths, to trace a model for export."""
        return random_tokens(self.source.size, lengths, generator)

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions of a source that differ from batch to batch."""
        return {"data": {0: "sources", 1: "tokens"}, "keep": {0: "sources", 1: "tokens"}}

    def is_known(self, record: Record) -> bool:
        """False where every token of a source is unknown, so that an answer would be a guess; a copied word is none."""
        tokens = self.encode(record).source
        return len(tokens) > 1 if self.copies else any(token not in (UNK, EOS) for token in tokens)

    def fits(self, record: Record) -> bool:
        """True if a source has a known token and is not cut."""
        return self.fit_all([record])[0]

    def fit_all(self, records: Sequence[Record]) -> list[bool]:
        """Which sources have a known token, or one to copy, and are not cut; they are tokenized together."""
        sources = self.source.encode_all([self.prepare(record.source) for record in records])
        return [
            len(tokens) < self.max_source_length and (self.copies or any(token not in (UNK, EOS) for token in tokens))
            for tokens in sources
        ]

    def select_fitting(self, records: Sequence[Record]) -> list[int]:
        """Indices of the records whose sources are not cut."""
        sources = self.source.encode_all([self.prepare(record.source) for record in records])
        return [index for index, tokens in enumerate(sources) if len(tokens) < self.max_source_length]

    def prepare(self, text: str) -> str:
        """Text that is tokenized: in lower case with `lowercase`."""
        return text.lower() if self.lowercase else text

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizers' own files; returns the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        names = ("joint",) if self.joint else ("source", "target")
        settings: dict[str, Any] = {"format": FORMAT, "joint": self.joint}
        settings |= {
            name: getattr(self, name) for name in ("lowercase", "max_source_length", "max_target_length", "over_long")
        }
        settings |= {"copies": True} if self.copies else {}
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
        return cls(source, target, **values, copies=settings.get("copies") is True)


def unknown(examples: Sequence[Example]) -> float:
    """Share of UNK among the tokens of both sides, EOS aside."""
    sides = [side for example in examples for side in (example.source, example.target or [EOS])]
    return sum(side.count(UNK) for side in sides) / max(1, sum(len(side) - 1 for side in sides))


def random_tokens(vocabulary: int, lengths: Sequence[int], generator: torch.Generator) -> Padded:
    """Random token ids, rows of these lengths."""
    keep = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return Padded(torch.randint(vocabulary, keep.shape, generator=generator).masked_fill(~keep, 0), keep)


def until_end(numbers: Iterable[int]) -> list[int]:
    """Token ids before the first EOS."""
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
