"""Speech synthesis: a text in, sound out."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from os.path import isfile
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from regard.alignment.heads import Head
from regard.config import Train
from regard.data import table
from regard.data.audio.arrays import split_name
from regard.data.audio.batch import Synthesis
from regard.data.codec import Report
from regard.data.header import table_settings
from regard.data.lines import bounds
from regard.data.records import Record
from regard.data.split import HeldOut
from regard.errors import ConfigError, DataError, DataWarning
from regard.losses.types import Progress
from regard.tasks.kinds.tables import tables, texts
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.tasks.speak.advice import advise
from regard.tasks.speak.codec import SpeechCodec, SpeechExample, build_front, locate_sound
from regard.tasks.speak.config import SpeakData, SpeakDropout, SpeakModel
from regard.tasks.speak.loss import SpeakLoss, mean_absolute_error
from regard.tasks.speak.metrics import measure_reading
from regard.tasks.speak.model import Speaker, build_speaker
from regard.tasks.speak.predictor import SpeakPredictor
from regard.tasks.speak.rules import RULES as RULES
from regard.training.experiment import Experiment

FIGURES = ("loss", "l1", "diagonality", "misread")
"""Metrics that may be monitored."""
HEARD = 8
"""Texts of the validation set that are spoken at each evaluation."""
LISTED = 10


@dataclass(frozen=True)
class SpeakConfig(TaskConfig):
    """Settings of speech synthesis."""

    FAMILY: ClassVar[str] = "regard.tasks.speak.experiment"
    WRITES: ClassVar[bool] = False
    HEEDED: ClassVar[tuple[str, ...]] = ("train.guided_attention", "train.cuda_graphs")

    data: SpeakData = field(default_factory=SpeakData)
    model: SpeakModel = field(default_factory=SpeakModel)
    dropout: SpeakDropout = field(default_factory=SpeakDropout)
    train: Train = field(default_factory=lambda: Train(guided_attention=1.0))


@dataclass(frozen=True)
class Recordings:
    """Records, their sounds where these are synthetic and no files, and the held-out part of their table."""

    records: list[Record]
    sounds: list[Synthesis] | None = None
    held_out: HeldOut | None = None


def experiment(name: str, task: Task, config: SpeakConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin = start(config, load_codec, out)
    if config.train.monitor not in FIGURES:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(FIGURES)}, got {config.train.monitor!r}")
    training, validation = load_records(task, config)
    codec = begin.codec if begin else SpeechCodec.fit(training.records, config.data)
    examples, report = codec.encode_all(training.records, sounds=training.sounds)
    report = report._replace(held_out=training.held_out)
    valid, _ = codec.encode_all(validation.records, "truncate", validation.sounds)  # every record is evaluated
    if not examples or not valid:
        raise DataError(
            f"too little is left: {report} to train on, {len(valid):,} to validate with; a longer limit (data.max_seconds, "
            "data.max_source_length) keeps more"
        )
    codec = codec if begin else codec.standardise(examples)
    torch.manual_seed(config.train.seed)  # equal seeds begin with equal weights
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    return Experiment(
        model=model,
        codec=codec,
        train=codec.train_loader(examples, config.data.budget, config.train.seed),
        valid=valid,
        loss=SpeakLoss(config.train),
        evaluate=Evaluation(name, config, codec, valid),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=config.train.monitor == "diagonality",
        extra_files=write_samples(validation),
    ), report


def load_records(task: Task, config: SpeakConfig) -> tuple[Recordings, Recordings]:
    """Training and validation records: of the named tables, or synthetic ones of the task."""
    named = tables(config.data, read, "text", texts)
    if named is None:
        parts = task.synthesise(config.data.samples, seed=0)
        training, validation = (
            Recordings([sound.record._replace(source=sound.text, target=sound.record.source) for sound in part], list(part))
            for part in parts
        )
        return training, validation
    named = named.prepared(task.prepare)
    check_sounds([*named.train, *named.valid])
    return Recordings(named.train, held_out=named.held_out), Recordings(named.valid)


def check_sounds(records: Sequence[Record]) -> None:
    """Raise where recordings are missing, and list the first of them with their lines."""
    absent = [record for record in records if (path := locate_sound(record)) is None or not isfile(split_name(path)[0])]
    if absent:
        listed = ", ".join(f"{record.where} {(record.target or '')[:300]}" for record in absent[:LISTED])
        more = f" and {len(absent) - LISTED:,} more" * (len(absent) > LISTED)
        raise DataError(
            f"{len(absent):,} of {len(records):,} recordings are missing: {listed}{more}; paths count from the folder of "
            "the table that names them"
        )


def write_samples(validation: Recordings) -> Mapping[str, bytes]:
    """Texts of a few synthetic samples to try the model on."""
    if validation.sounds is None:
        return {}
    return {"samples/texts.txt": "".join(f"{record.source}\n" for record in validation.records[:HEARD]).encode()}


class Evaluation:
    """Metrics of a model while it is trained: loss, L1 and diagonality with teacher forcing, and of a few texts that are
    spoken the share of misread words. It warns where the attention does not learn to read."""

    def __init__(self, name: str, config: SpeakConfig, codec: SpeechCodec, valid: Sequence[SpeechExample]):
        self.name, self.config, self.codec, self.valid = name, config, codec, list(valid)
        self.loader = codec.loader(self.valid, config.data.budget)
        self.history = list[float]()
        self.has_warned = False

    def __call__(self, model: nn.Module) -> dict[str, float]:
        from regard import tasks

        assert isinstance(model, Speaker), "the model of speech synthesis is a Speaker"
        predictor = SpeakPredictor(tasks.bind(self.name), self.config, self.codec, model)
        figures = self.measure_forced(model, predictor)
        figures["misread"] = self.measure_free(predictor)
        self.history.append(figures["diagonality"])
        advice = advise(self.history, figures["misread"] / 100, self.config)
        if advice and not self.has_warned:
            self.has_warned = True
            warnings.warn(advice, DataWarning, stacklevel=2)
        return figures

    def measure_forced(self, model: Speaker, predictor: SpeakPredictor) -> dict[str, float]:
        """Loss, L1 and diagonality with teacher forcing."""
        compute_loss, device = SpeakLoss(self.config.train), next(model.parameters()).device
        total, frames, errors, shares = 0.0, 0, list[float](), list[float]()
        for indices, batch in self.loader.in_order():
            batch = batch.to(device)
            loss = compute_loss(model, batch, Progress(0, 1))
            total, frames = total + float(loss.total), frames + int(loss.tokens)
            spoken = model(batch.source, batch.target)
            errors += mean_absolute_error(spoken.refined, batch.target.data, batch.target.keep)
            for row, index in enumerate(indices):
                weights = predictor.read_row(self.valid[index], spoken, row)[1]
                shares.append(measure_reading(weights, self.codec.word_units(self.valid[index])).diagonality)
        return {"loss": total / max(frames, 1), "l1": sum(errors) / len(errors), "diagonality": sum(shares) / len(shares)}

    def measure_free(self, predictor: SpeakPredictor) -> float:
        """Per cent of the words of a few texts that are skipped or repeated when they are spoken."""
        few = [example._replace(sound=None, frames=0) for example in self.valid[:HEARD]]
        misread, words = 0, 0
        for indices, batch in self.codec.loader(few, self.config.data.budget).in_order():
            spoken = predictor.infer(batch, weights=True)
            for row, index in enumerate(indices):
                weights = predictor.read_row(few[index], spoken, row)[1]
                reading = measure_reading(weights, self.codec.word_units(few[index]))
                misread += len({*reading.skipped, *reading.repeated})
                words += reading.words
        return 100 * misread / max(words, 1)


def build(config: SpeakConfig, codec: SpeechCodec) -> Speaker:
    """The model that a config describes, for the tokens and the frames of a codec."""
    return build_speaker(config.model, config.dropout, codec.vocabulary, codec.channels)


def build_small(config: SpeakConfig) -> Speaker:
    """The model of a config for a small vocabulary: validates the settings of model and data."""
    with torch.device("cpu"):  # whose filters are checked
        front = build_front(config.data)
    return build_speaker(config.model, config.dropout, 8, front.channels)


def read(data: SpeakData, path: str) -> list[Record]:
    """The records of a table: the text is the source, and the recording the target."""
    settings = table_settings(data)
    return list(table.read(path, data.text, data.audio, names=("text", "audio"), bounds=bounds(data), settings=settings))


def load_codec(directory: Traversable) -> SpeechCodec:
    """The codec of a run directory."""
    return SpeechCodec.load(directory)


def build_predictor(task: BoundTask, config: SpeakConfig, codec: SpeechCodec, model: Speaker, head: Head) -> SpeakPredictor:
    """The predictor of a model."""
    return SpeakPredictor(task, config, codec, model)
