"""Codec of texts with recordings: the texts are sources, and frames of a log mel spectrogram are targets."""

import io
import json
import re
import wave
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.alignment.words import Units
from regard.data.audio.arrays import is_array, read_shape
from regard.data.audio.batch import AudioExample, Synthesis
from regard.data.audio.cache import FeatureCache
from regard.data.audio.features import LogMel
from regard.data.audio.normalise import Normalisation
from regard.data.audio.reading import read_header
from regard.data.batch import Batch, Padded, pad, pad_numbers
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.feedback import NumberFeedback
from regard.data.loader import ModalityLoader
from regard.data.modality import WritableFile
from regard.data.records import Record
from regard.data.special_tokens import EOS, UNK
from regard.data.text import tokenizers
from regard.data.text.codec import TextCodec
from regard.errors import DataError
from regard.tasks.speak.config import SpeakData
from regard.tasks.speak.griffin_lim import invert_log_mel

if TYPE_CHECKING:
    from regard.data.axis import Audio, Text

FORMAT = 1
TEXTS = "text"
"""Folder of a run directory with the tokenizer."""
WORD = re.compile(r"\w[\w'’-]*")
MEASURED = 1000
"""The most recordings from which the mean of a channel is computed."""


class SpeechExample(NamedTuple):
    """Token ids of a text with EOS, its recording where it has one, and the recording's number of frames."""

    source: list[int]
    sound: Path | Synthesis | None
    frames: int
    record: Any


class SpokenFrames(NamedTuple):
    """Frames of one text as a model predicts them, and the weights of its attention over the text."""

    frames: Float[Tensor, "frames channels"]
    weights: Float[Tensor, "steps keys"] | None = None


@dataclass(frozen=True)
class SpeechCodec:
    """Tokenizer of texts, and log mel spectrograms of recordings, normalised over the training data."""

    kind: ClassVar[str] = "text"
    reads_files: ClassVar[bool] = False
    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer", "vocab_size", "min_frequency", "lowercase", "rate", "bins", "window_ms", "hop_ms",
    )  # fmt: skip
    """Settings of `data` that are fixed once it is fitted."""

    text: TextCodec
    front: LogMel
    normalisation: Normalisation = field(default_factory=lambda: Normalisation("none"))
    max_frames: int = 960
    pace: float = 1.0
    """The most frames for each token of a text in the training data."""

    @classmethod
    def fit(cls, records: Sequence[Record], data: SpeakData) -> "SpeechCodec":
        """Train the tokenizer on the texts of the records."""
        texts = [record.source.lower() if data.lowercase else record.source for record in records]
        tokenizer = tokenizers.train(data.tokenizer, texts, data.vocab_size, data.min_frequency)
        limits = data.lowercase, data.max_source_length, data.max_source_length, data.over_long
        return cls(TextCodec(tokenizer, tokenizer, *limits), build_front(data), max_frames=data.max_frames)

    def adapt(self, data: SpeakData) -> "SpeechCodec":
        """Codec of the same tokens and features, with the limits of this config."""
        text = replace(
            self.text,
            max_source_length=data.max_source_length,
            max_target_length=data.max_source_length,
            over_long=data.over_long,
        )
        return replace(self, text=text, max_frames=data.max_frames)

    def standardise(self, examples: Sequence[SpeechExample]) -> "SpeechCodec":
        """Codec with the pace of these recordings, and with the mean and the deviation of them, or of many of them."""
        cache = self.cache(examples)
        pace = max(example.frames / len(example.source) for example in examples)
        numbers = range(0, len(cache), -(-len(cache) // MEASURED))
        normalisation = Normalisation.measure(cache.features(number) for number in numbers)
        return replace(self, normalisation=normalisation, pace=round(pace, 3))

    def limit_frames(self, tokens: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """The most frames of texts of so many tokens: at the slowest pace of the training data, and a half more."""
        return (1.5 * self.pace * tokens).ceil().long().clamp(1, self.max_frames)

    @property
    def max_source_length(self) -> int:
        """The most tokens of a text, EOS included."""
        return self.text.max_source_length

    @property
    def channels(self) -> int:
        """Numbers of a frame."""
        return self.front.channels

    @property
    def seconds_per_frame(self) -> float:
        """Time between two frames."""
        return self.front.hop / self.front.rate

    @property
    def feedback(self) -> NumberFeedback:
        """Feedback of the decoder: the last frame, and a learned stop."""
        return NumberFeedback(self.channels, stops=True)

    def read(self, text: str, number: int = 1) -> Record:
        """Record of a text as it was typed."""
        return self.text.read(text, number)

    def encode(self, record: Record) -> SpeechExample:
        """Example of one record; it is never dropped, and a text that is too long is cut."""
        example: SpeechExample = self.encode_all([record], "truncate").examples[0]
        return example

    def encode_all(
        self,
        records: Iterable[Record],
        over_long: OverLong | None = None,
        sounds: Sequence[Synthesis] | None = None,
    ) -> Corpus:
        """Examples of records, whose recordings are files (their target) or these synthetic sounds.

        A recording is never cut, since its text could not be: of those to train on, longer ones are dropped. With
        `over_long` (an evaluation) all are encoded.
        """
        records = list(records)
        training, drop = over_long is None, (over_long or self.text.over_long) == "drop"
        tokens = self.text.source.encode_all([self.text.prepare(record.source) for record in records])
        examples, cut = list[SpeechExample](), 0
        for number, (record, source) in enumerate(zip(records, tokens, strict=True)):
            sound = sounds[number] if sounds is not None else locate_sound(record)
            frames = self.measure(record, sound)
            long = len(source) >= self.max_source_length
            if (drop and long) or (training and frames > self.max_frames):
                continue
            cut += long
            examples.append(SpeechExample([*source[: self.max_source_length - 1], EOS], sound, frames, record))
        dropped = len(records) - len(examples)
        unknown = sum(example.source.count(UNK) for example in examples)
        share = unknown / max(1, sum(len(example.source) - 1 for example in examples))
        return Corpus(examples, Report(len(records), len(examples), cut, 0, dropped, share))

    def measure(self, record: Record, sound: Path | Synthesis | None) -> int:
        """Frames of a recording by the header of its file; 0 where there is none."""
        if sound is None:
            return 0
        if isinstance(sound, Path) and is_array(sound):
            frames, channels = read_shape(sound, record.where)
            if channels != self.channels:
                raise DataError(
                    f"{record.where}: {sound} has frames of {channels} channels, and data.bins={self.channels} are learned"
                )
            return frames
        if isinstance(sound, Path):
            header = read_header(sound, record.where)
            if not header.frames:
                raise DataError(f"{record.where}: {sound} needs sound, got none: it has a header and no samples")
            return self.front.count(-(-header.frames * self.front.rate // header.rate))
        return self.front.count(-(-sound.length * self.front.rate // sound.rate))

    def cache(self, examples: Sequence[SpeechExample]) -> FeatureCache:
        """Cache of the features of examples."""
        recordings = [
            AudioExample(sound, frames, None, record) for _, sound, frames, record in examples if sound is not None
        ]
        return FeatureCache(recordings, self.front)

    def features(self, example: SpeechExample) -> Float[Tensor, "frames channels"]:
        """Normalised frames of the recording of one example."""
        return self.normalisation(self.cache([example]).features(0))

    def length(self, example: SpeechExample) -> int:
        """Number of frames of a recording, or of tokens of a text without one."""
        return max(example.frames, len(example.source))

    def budget(self, examples: Sequence[SpeechExample], count: int) -> int:
        """Size of a batch of about `count` examples of median length."""
        lengths = sorted(self.length(example) for example in examples)
        return count * max(1, lengths[len(lengths) // 2])

    def collate(self, examples: Sequence[SpeechExample]) -> Padded:
        """Texts of examples, padded to one tensor."""
        return pad([example.source for example in examples])

    def encode_target(self, record: Record) -> Float[Tensor, "frames channels"] | None:
        """Normalised frames of a record's recording; None where it has none."""
        example = self.encode(record)
        return None if example.sound is None else self.features(example)

    def collate_target(self, examples: Sequence[SpeechExample]) -> Padded | None:
        """Frames of examples, padded to one tensor; None where they have no recording."""
        if any(example.sound is None for example in examples):
            return None
        return pad_numbers([self.features(example) for example in examples])

    def loader(self, examples: Sequence[SpeechExample], budget: int) -> "SpeechLoader":
        """Batches of an evaluation, each of at most this size."""
        return SpeechLoader(self, examples, budget, shuffle=False)

    def train_loader(self, examples: Sequence[SpeechExample], budget: int, seed: int) -> "SpeechLoader":
        """Batches of a training."""
        return SpeechLoader(self, examples, budget, seed, prefetch=2)

    def decode(self, output: SpokenFrames) -> Float[Tensor, " samples"]:
        """Samples of predicted frames, by Griffin-Lim."""
        return invert_log_mel(self.front, self.restore(output.frames))

    def restore(self, frames: Float[Tensor, "frames channels"]) -> Float[Tensor, "frames channels"]:
        """Log mel spectrogram of normalised frames."""
        frames = frames.detach().float().cpu()
        if self.normalisation.kind != "corpus":
            return frames
        mean, deviation = (torch.tensor(part) for part in (self.normalisation.mean, self.normalisation.deviation))
        return frames * deviation.clamp_min(1e-3) + mean

    def write(self, prediction: Float[Tensor, " samples"], file: WritableFile) -> None:
        """Write samples as a WAV file of 16 bits."""
        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(self.front.rate)
            sound.writeframes((prediction.clamp(-1, 1) * 32767).round().to(torch.int16).numpy().astype("<i2").tobytes())
        file.write(buffer.getvalue())

    def target_pieces(self, output: SpokenFrames) -> list[str]:
        """The second at which each step begins."""
        return self.target_axis(output).labels

    def target_axis(self, output: SpokenFrames) -> "Audio":
        """Axis of an attention's queries: the steps of the decoder, over the spectrogram, with the sound."""
        from regard.data.axis import Audio  # axes need NumPy

        steps = len(output.frames) if output.weights is None else len(output.weights)
        frames = self.restore(output.frames)
        step_seconds = self.seconds_per_frame * len(frames) / max(1, steps)
        return Audio(steps, step_seconds, frames.T.numpy(), self.decode(output).numpy(), self.front.rate)

    def word_units(self, example: SpeechExample) -> Units:
        """Words of a text and the tokens that make up each: letters and digits, without spaces and punctuation."""
        text = self.text.prepare(example.record.source)
        pieces = self.text.source.pieces(text)[: self.max_source_length - 1]
        words = [match for match in WORD.finditer(text) if any(piece.start < match.end() for piece in pieces)]
        members = torch.zeros(len(words), len(example.source), dtype=torch.bool)
        for row, match in enumerate(words):
            for place, piece in enumerate(pieces):
                members[row, place] = piece.start < match.end() and piece.end > match.start()
        return Units(tuple(match.group() for match in words), members)

    def axis(self, example: SpeechExample) -> "Text":
        """Axis of an attention's keys: the tokens of a text."""
        return self.text.axis(self._as_text(example))

    def pieces(self, example: SpeechExample) -> list[str]:
        """Label of each token of a text."""
        return self.text.pieces(self._as_text(example))

    def grid(self, example: SpeechExample) -> None:
        """None: a text has no rows and columns."""

    def _as_text(self, example: SpeechExample) -> Any:
        return self.text.encode(example.record._replace(target=None))

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Padded:
        """Random tokens, rows of these lengths, to trace a model for export."""
        return self.text.example_inputs(lengths, generator)

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions of a source that differ from batch to batch."""
        return self.text.dynamic_axes

    def is_known(self, record: Record) -> bool:
        """False where every token of a text is unknown."""
        return self.text.is_known(record._replace(target=None))

    def fits(self, record: Record) -> bool:
        """True if a text has a known token and is not cut."""
        return self.text.fits(record._replace(target=None))

    def select_fitting(self, records: Sequence[Record]) -> list[int]:
        """Indices of the records whose texts are not cut."""
        return self.text.select_fitting(records)

    @cached_property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return self.text.source.size

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizer's own files; returns the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        names = ("lowercase", "max_source_length", "over_long")
        settings: dict[str, Any] = {"format": FORMAT, "writes": "sound", "max_frames": self.max_frames, "pace": self.pace}
        settings |= {name: getattr(self.text, name) for name in names}
        settings |= {"front": asdict(self.front), "normalisation": asdict(self.normalisation)}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return [path, *self.text.source.save(directory, TEXTS)]

    @classmethod
    def load(cls, directory: Traversable) -> "SpeechCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(values, dict) or values.get("format") != FORMAT or values.get("writes") != "sound":
                raise ValueError("it is of another format")
            limits = bool(values["lowercase"]), int(values["max_source_length"]), int(values["max_source_length"])
            front, fitted, most = LogMel(**values["front"]), values["normalisation"], int(values["max_frames"])
            pace = float(values["pace"])
            numbers = [tuple(map(float, fitted[name])) for name in ("mean", "deviation")]
            normalisation = Normalisation(fitted["kind"], *numbers)
            if normalisation.kind == "corpus" and {len(part) for part in numbers} != {front.channels}:
                raise ValueError("mean and deviation need a number for each channel")
            if values["over_long"] not in ("truncate", "drop"):
                raise ValueError("over_long needs to be truncate or drop")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of speech, format {FORMAT}: {error}") from error
        tokenizer = tokenizers.load(directory, TEXTS)
        return cls(TextCodec(tokenizer, tokenizer, *limits, values["over_long"]), front, normalisation, most, pace)


class SpeechLoader(ModalityLoader):
    """Batches of texts and recordings of similar length; the features of each recording are computed once."""

    codec: SpeechCodec

    def __init__(
        self,
        codec: SpeechCodec,
        examples: Sequence[SpeechExample],
        budget: int,
        seed: int = 0,
        shuffle: bool = True,
        prefetch: int = 0,
    ):
        super().__init__(codec, examples, budget, seed, shuffle, prefetch)
        self.cache = codec.cache(examples) if all(example.sound is not None for example in examples) else None

    def collate(self, indices: Sequence[int], step: int | None = None) -> Batch:
        """Texts and frames of the examples with these indices; no frames where one has no recording."""
        examples: list[Any] = [self.examples[index] for index in indices]
        target = None
        if self.cache is not None:
            target = pad_numbers([self.codec.normalisation(self.cache.features(index)) for index in indices])
        return Batch(self.codec.collate(examples), target, tuple(example.record for example in examples))


def build_front(data: SpeakData) -> LogMel:
    """Features of the settings of data."""
    window, hop = (max(1, round(data.rate * span / 1000)) for span in (data.window_ms, data.hop_ms))
    return LogMel(data.rate, data.bins, window, hop, low=min(20.0, data.rate / 8))


def locate_sound(record: Record) -> Path | None:
    """Path of the recording of a record: in a table it is relative to the table's folder; None where it has none."""
    if record.target is None:
        return None
    return Path(record.where.rpartition(":")[0]).parent / record.target
