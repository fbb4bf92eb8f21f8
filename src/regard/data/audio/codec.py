"""Codec of recordings with texts: the recordings are sources, and the target modality is text."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import AudioTextData
from regard.data.audio.batch import AudioExample, Synthesis
from regard.data.audio.features import LogMel, Mfcc
from regard.data.audio.normalise import Normalisation
from regard.data.audio.source import AudioSource, describe_source
from regard.data.batch import Padded, pad_present
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.feedback import TokenFeedback
from regard.data.modality import WritableFile
from regard.data.records import Record, locate
from regard.data.special_tokens import EOS, UNK
from regard.data.text import tokenizers
from regard.data.text.codec import until_end
from regard.data.text.tokenizers import Tokenizer
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.data.axis import Text
    from regard.data.text.axis import TokenAxes

FORMAT = 1


@dataclass(frozen=True)
class AudioTextCodec(AudioSource):
    """Codec of recordings, and a tokenizer for what is said in them. `max_target_length` counts EOS."""

    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer", "vocab_size", "min_frequency", "lowercase", "features", "rate", "bins", "coefficients", "window_ms",
        "hop_ms", "normalise",
    )  # fmt: skip
    """Settings of `data` that are fixed once it is fitted."""
    feedback: ClassVar[TokenFeedback] = TokenFeedback()

    target: Tokenizer
    lowercase: bool = False
    max_target_length: int = 512
    over_long: OverLong = "drop"

    @classmethod
    def fit(
        cls, records: Sequence[Record], data: AudioTextData, stride: int, *, synthetic: bool = False
    ) -> "AudioTextCodec":
        """Train the tokenizer on the texts of the records."""
        if data.max_target_length < 2:
            raise ValueError("max_target_length needs at least 2: a token and the end")
        texts = [record.target.lower() if data.lowercase else record.target for record in records if record.target]
        if not texts or len(texts) < len(records):
            raise DataError(f"tokens are learnt from recordings with texts, got {len(records)} and {len(texts)}")
        target = tokenizers.train(data.tokenizer, texts, data.vocab_size, data.min_frequency)
        source = describe_source([] if synthetic else records, data, stride)
        return cls(target, data.lowercase, data.max_target_length, data.over_long, **source)

    def adapt(self, data: AudioTextData) -> "AudioTextCodec":
        """Codec of the same tokens and features, with the limits of this config."""
        return replace(self, max_target_length=data.max_target_length, over_long=data.over_long, max_frames=data.max_frames)

    def encode(self, record: Record) -> AudioExample:
        """Example of one record; it is never dropped, and a text that is too long is cut."""
        example: AudioExample = self.encode_all([record], "truncate").examples[0]
        return example

    def encode_all(
        self, records: Iterable[Record], over_long: OverLong | None = None, sounds: Sequence[Synthesis] | None = None
    ) -> Corpus:
        """Examples of records, whose recordings are files, or these synthetic sounds.

        A recording is never cut, since its text could not be: of those to train on, longer ones are dropped. With
        `over_long` (an evaluation) all are encoded.
        """
        records = list(records)
        frames = self.measure_all(records, sounds)
        targets = iter(
            self.target.encode_all([self.prepare(record.target) for record in records if record.target is not None])
        )
        drop, training = (over_long or self.over_long) == "drop", over_long is None
        examples: list[AudioExample] = []
        cut = 0
        for number, record in enumerate(records):
            target = None if record.target is None else next(targets)
            long = target is not None and len(target) >= self.max_target_length
            if (drop and long) or (training and frames[number] > self.max_frames):
                continue
            cut += long
            ended = None if target is None else [*target[: self.max_target_length - 1], EOS]
            sound = locate(record) if sounds is None else sounds[number]
            examples.append(AudioExample(sound, frames[number], ended, record))
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), 0, cut, dropped, unknown(examples)))

    def encode_target(self, record: Record) -> list[int] | None:
        """Token ids of a record's text with EOS, cut where it is too long; None where it has none."""
        if record.target is None:
            return None
        return [*self.target.encode(self.prepare(record.target))[: self.max_target_length - 1], EOS]

    def collate_target(self, examples: Sequence[AudioExample]) -> Padded | None:
        """Texts of examples, padded to one tensor; None where they have none."""
        return pad_present([example.target for example in examples])

    def decode(self, numbers: Iterable[int]) -> str:
        """Text of an output, up to its first EOS."""
        return self.target.decode(until_end(numbers))

    def write(self, prediction: str, file: WritableFile) -> None:
        """Write a text as one line."""
        file.write(f"{prediction}\n")

    def target_axis(self, numbers: Sequence[int]) -> "Text":
        """Axis of an output: its tokens, and the part of the decoded text that each covers."""
        return self.target_axes.decoded(numbers)

    @cached_property
    def target_axes(self) -> "TokenAxes":
        """Axes of outputs, with the table of their tokens."""
        from regard.data.text.axis import TokenAxes

        return TokenAxes(self.target)

    def target_pieces(self, numbers: Iterable[int]) -> list[str]:
        """Text of each token of an output, up to its first EOS and with it."""
        numbers = list(numbers)
        return self.target.shown(numbers[: len(until_end(numbers)) + 1])

    def prepare(self, text: str) -> str:
        """Text that is tokenized: in lower case with `lowercase`."""
        return text.lower() if self.lowercase else text

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizer's own files; returns the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        names = ("lowercase", "max_target_length", "over_long", "stride", "arrays", "hop_ms", "max_frames")
        settings: dict[str, Any] = {"format": FORMAT, "reads": self.kind, **{name: getattr(self, name) for name in names}}
        settings |= {"features": "mfcc" if isinstance(self.front, Mfcc) else "log_mel", "front": asdict(self.front)}
        settings |= {"normalisation": asdict(self.normalisation)}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return [path, *self.target.save(directory, "target")]

    @classmethod
    def load(cls, directory: Traversable) -> "AudioTextCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            values = _parse(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of sound, format {FORMAT}: {error}") from error
        return cls(tokenizers.load(directory, "target"), **values)


def unknown(examples: Sequence[AudioExample]) -> float:
    """Share of UNK among the tokens, EOS aside."""
    sides = [example.target or [EOS] for example in examples]
    return sum(side.count(UNK) for side in sides) / max(1, sum(len(side) - 1 for side in sides))


def _parse(settings: Any) -> dict[str, Any]:
    if (
        not isinstance(settings, dict)
        or settings.pop("format", None) != FORMAT
        or settings.pop("reads", None) != AudioSource.kind
    ):
        raise ValueError("it is of another format")
    front = {"mfcc": Mfcc, "log_mel": LogMel}[settings.pop("features")](**settings.pop("front"))
    fitted = settings.pop("normalisation")
    normalisation = Normalisation(fitted["kind"], *(tuple(map(float, fitted[name])) for name in ("mean", "deviation")))
    if settings["over_long"] not in ("truncate", "drop"):
        raise ValueError(f"over_long is {settings['over_long']!r}, and needs to be truncate or drop")
    kinds = {"stride": int, "max_target_length": int, "max_frames": int, "hop_ms": float, "lowercase": bool}
    if wrong := [name for name, kind in kinds.items() if type(settings.get(name)) is not kind]:
        raise ValueError(f"{wrong[0]} is missing or of the wrong kind")
    if min(settings["stride"], settings["max_frames"], settings["hop_ms"]) <= 0:
        raise ValueError("stride, max_frames and hop_ms need to be above 0")
    channels = front.channels if settings["arrays"] is None else settings["arrays"]
    if normalisation.kind == "corpus" and {len(normalisation.mean), len(normalisation.deviation)} != {channels}:
        raise ValueError("mean and deviation need a number for each channel")
    return settings | {"front": front, "normalisation": normalisation}
