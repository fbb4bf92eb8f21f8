"""Speech recognition: sound in, a text out."""

import io
import wave
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.alignment.heads import Head
from regard.config import AudioDropout, AudioTextData, AudioToTextModel, SpeechSearch, SpeechTrain
from regard.data.audio.augment import parse_augmentation
from regard.data.audio.batch import Synthesis
from regard.data.audio.codec import AudioTextCodec
from regard.data.audio.features import build_features
from regard.data.audio.synthetic.syllables import Utterance
from regard.data.audio.tables import read_records
from regard.data.codec import Report
from regard.data.records import Record, locate
from regard.data.split import HeldOut
from regard.errors import ConfigError, DataError
from regard.metrics.text import LOWER_IS_BETTER, Measurement
from regard.models import speech2seq
from regard.models.encoders.subsampling import count_halvings
from regard.models.speech2seq import Speech2Seq
from regard.tasks.kinds.sequence import build_risk, check_monitor, evaluate_outputs
from regard.tasks.kinds.tables import tables
from regard.tasks.kinds.types import BoundTask, TaskConfig, Writes
from regard.tasks.transcribe.loss import JointLoss
from regard.tasks.transcribe.rules import RULES
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.tasks.transcribe.predictor import SpeechPredictor

__all__ = ["RULES", "SpeechConfig"]

SAMPLES = 8
"""Synthetic recordings that a run directory keeps as samples."""


@dataclass(frozen=True)
class SpeechConfig(TaskConfig):
    """Settings of a task that reads sound and writes text."""

    FAMILY: ClassVar[str] = "regard.tasks.transcribe.experiment"

    data: AudioTextData = field(default_factory=AudioTextData)
    model: AudioToTextModel = field(default_factory=AudioToTextModel)
    dropout: AudioDropout = field(default_factory=AudioDropout)
    train: SpeechTrain = field(default_factory=SpeechTrain)
    search: SpeechSearch = field(default_factory=SpeechSearch)


def experiment(name: str, task: Writes, config: SpeechConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, data = start(config, load_codec, out), config.data
    training, validation = load_records(task, config)
    codec = begin.codec if begin else fit_codec(training, config)
    examples, report = codec.encode_all(training.records, sounds=training.sounds)
    report = report._replace(held_out=training.held_out)
    valid, valid_report = codec.encode_all(validation.records, "truncate", validation.sounds)  # every record is evaluated
    if not examples or not valid:
        raise DataError(
            f"too little is left: {report} to train on, {valid_report} to validate with; a longer limit (data.max_seconds, "
            "data.max_target_length) or data.over_long=truncate keeps more"
        )
    cache = codec.cache(examples)
    codec = codec if begin else codec.standardise(cache)
    check_monitor(task, config, valid)
    torch.manual_seed(config.train.seed)  # equal seeds begin with equal weights
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    return Experiment(
        model=model,
        codec=codec,
        train=codec.train_loader(cache, data.budget, config.train.seed, parse_augmentation(data.augment)),
        valid=valid,
        loss=JointLoss(config.train, model, build_risk(task, config, codec)),
        evaluate=partial(evaluate_outputs, name, config, codec, valid=valid, loader=codec.loader(valid, data.budget)),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=config.train.monitor not in LOWER_IS_BETTER,
        extra_files=write_samples(validation.sounds or []),
    ), report


def fit_codec(training: "SpeechRecords", config: SpeechConfig) -> AudioTextCodec:
    """A codec with a tokenizer trained on these records."""
    synthetic = training.sounds is not None
    return AudioTextCodec.fit(training.records, config.data, config.model.subsampling, synthetic=synthetic)


@dataclass(frozen=True)
class SpeechRecords:
    """Records, their sounds where these are synthetic and no files, and the held-out part of their table."""

    records: list[Record]
    sounds: list[Synthesis] | None = None
    held_out: HeldOut | None = None


def load_records(task: Writes, config: SpeechConfig) -> tuple[SpeechRecords, SpeechRecords]:
    """Training and validation records: of the named tables, or synthetic ones of the task."""
    named = tables(config.data, read, "recording", list_paths)
    if named is None:
        parts = task.synthesise(config.data.samples, seed=0)
        training, validation = (SpeechRecords([sound.record for sound in part], list(part)) for part in parts)
        return training, validation
    named = named.prepared(task.prepare)
    return SpeechRecords(named.train, held_out=named.held_out), SpeechRecords(named.valid)


def list_paths(records: Sequence[Record]) -> list[str]:
    """Paths of the recordings, by which a table is split."""
    return [str(locate(record)) for record in records]


def write_samples(sounds: Sequence[Synthesis]) -> Mapping[str, bytes]:
    """Files of a few validation recordings, the table of their texts, and the times of their words."""
    few = [sound for sound in sounds[:SAMPLES] if isinstance(sound, Utterance)]
    files = {f"samples/{number}.wav": encode_wav(sound(), sound.rate) for number, sound in enumerate(few, 1)}
    lines = "".join(f"{number}.wav\t{sound.text}\n" for number, sound in enumerate(few, 1))
    times = "".join(
        f"{number}.wav\t{word.start:.3f}\t{word.end:.3f}\t{word.text}\n"
        for number, sound in enumerate(few, 1)
        for word in sound.words
    )
    return {**files, "samples/texts.tsv": lines.encode(), "samples/times.tsv": times.encode()} if few else {}


def encode_wav(samples: Float[Tensor, " samples"], rate: int) -> bytes:
    """Bytes of a WAV file with 16 bits a sample."""
    file = io.BytesIO()
    with wave.open(file, "wb") as opened:
        opened.setnchannels(1)
        opened.setsampwidth(2)
        opened.setframerate(rate)
        opened.writeframes((samples.clamp(-1, 1) * 32767).round().short().numpy().astype("<i2").tobytes())
    return file.getvalue()


def build(config: SpeechConfig, codec: AudioTextCodec) -> Speech2Seq:
    """The model that a config describes, for the features and the vocabulary of a codec."""
    return build_network(config, codec.channels, codec.target.size)


def build_network(config: SpeechConfig, channels: int, vocabulary: int) -> Speech2Seq:
    """The model that a config describes, for so many channels and tokens."""
    longest = max(config.data.max_target_length, config.search.max_length + 1)
    sizes = channels, vocabulary, (config.data.max_frames, longest)
    return speech2seq.build(config.model, config.dropout, *sizes, ctc=config.train.ctc_weight > 0)


def build_small(config: SpeechConfig) -> Speech2Seq:
    """The model of a config for a small vocabulary: validates the settings of model and data."""
    parse_augmentation(config.data.augment)
    count_halvings(config.model.subsampling)
    for setting in ("train", "search"):
        if not 0 <= (value := getattr(config, setting).ctc_weight or 0.0) <= 1:
            raise ConfigError(f"{setting}.ctc_weight needs to be from 0 to 1, got {value}")
    with torch.device("cpu"):  # whose filters are checked
        front = build_features(config.data)
    return build_network(config, front.channels, 8)


def read(data: AudioTextData, path: str) -> list[Record]:
    """The records of a table or of a Kaldi folder."""
    return read_records(data, path)


def load_codec(directory: Traversable) -> AudioTextCodec:
    """The codec of a run directory."""
    return AudioTextCodec.load(directory)


def build_predictor(
    task: BoundTask, config: SpeechConfig, codec: AudioTextCodec, model: Speech2Seq, head: Head
) -> "SpeechPredictor":
    """The predictor of a model."""
    from regard.tasks.transcribe.predictor import SpeechPredictor

    return SpeechPredictor(task, config, codec, model, head)


def measure_model(trained: "SpeechPredictor", examples: Sequence[object]) -> dict[str, Measurement]:
    """Metrics beside those of the transcripts: none."""
    return {}
