"""Captioning: a picture in, a text out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch

from regard.alignment.heads import Head
from regard.config import ImageDropout, ImageTextData, ImageToTextModel
from regard.data import table
from regard.data.codec import Report
from regard.data.header import table_settings
from regard.data.image.augmentation import parse_augmentation
from regard.data.image.codec import ImageTextCodec
from regard.data.image.reading import present
from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.synthetic.captions import Captioned
from regard.data.image.synthetic.words import Language
from regard.data.image.writing import png
from regard.data.lines import bounds
from regard.data.split import HeldOut
from regard.data.table import Record
from regard.errors import ConfigError, DataError
from regard.losses.teacher_forcing import TeacherForcing
from regard.metrics.text import LOWER_IS_BETTER, Measurement
from regard.models import image2seq
from regard.models.seq2seq import Seq2Seq
from regard.tasks.caption.metrics import LOOKS, measure_pointing
from regard.tasks.kinds.sequence import build_risk, check_monitor, evaluate_outputs
from regard.tasks.kinds.tables import pictures, tables
from regard.tasks.kinds.types import BoundTask, TaskConfig, Writes
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor

SHOWN = 8
"""Synthetic pictures that a run directory keeps as samples."""


@dataclass(frozen=True)
class PictureConfig(TaskConfig):
    """Settings of a task that reads pictures and writes text; each task has its own defaults."""

    FAMILY: ClassVar[str] = "regard.tasks.caption.experiment"
    SIDE: ClassVar[int] = 64
    """Most pixels on a side of a synthetic picture."""

    data: ImageTextData = field(default_factory=ImageTextData)
    model: ImageToTextModel = field(default_factory=ImageToTextModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


def experiment(name: str, task: Writes, config: PictureConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, data = start(config, load_codec, out), config.data
    training, validation = load_records(task, config)
    codec = begin.codec if begin else fit_codec(training.records, config)
    examples, report = codec.encode_all(training.records, renderers=training.renderers)
    report = report._replace(held_out=training.held_out)
    valid, valid_report = codec.encode_all(validation.records, "truncate", validation.renderers)  # every record is evaluated
    if not examples or not valid:
        raise DataError(
            f"too little is left: {report} to train on, {valid_report} to validate with; a longer limit "
            "(data.max_target_length) or data.over_long=truncate keeps more"
        )
    cache = codec.cache_images(examples)
    codec = codec if begin else codec.standardise(cache)
    attends = validation.renderers is not None and config.model.attention.name != "none"
    check_monitor(task, config, valid, [LOOKS] * attends)
    torch.manual_seed(config.train.seed)  # equal seeds begin with equal weights
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    return Experiment(
        model=model,
        codec=codec,
        train=codec.train_loader(cache, data.budget, config.train.seed, parse_augmentation(data.augment)),
        valid=valid,
        loss=TeacherForcing(config.train, model, build_risk(task, config, codec)),
        evaluate=partial(evaluate_outputs, name, config, codec, valid=valid, loader=codec.loader(valid, data.budget)),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=config.train.monitor not in LOWER_IS_BETTER,
        extra_files=write_samples(validation.renderers or []),
    ), report


def fit_codec(records: Sequence[Record], config: PictureConfig) -> ImageTextCodec:
    """A codec with tokenizers trained on these records, for the feature map of the config's model."""
    whole = config.model.vit.cls_tokens if config.model.encoder == "vit" else 0
    return ImageTextCodec.fit(records, config.data, config.model.stride, whole)


@dataclass(frozen=True)
class PictureRecords:
    """Records, the renderers of their pictures where these are no files, and the held-out part of their table."""

    records: list[Record]
    renderers: list[Drawing] | None = None
    held_out: HeldOut | None = None


def load_records(task: Writes, config: PictureConfig) -> tuple[PictureRecords, PictureRecords]:
    """Training and validation records: of the named files, or synthetic ones of the task."""
    data, named = config.data, tables(config.data, read, "picture", pictures)
    if named is None:
        size, parts = min(data.height, data.width, config.SIDE), task.synthesise(data.samples, seed=0)
        return render_later(parts[0], size, data.language), render_later(parts[1], size, data.language)
    present([*named.train, *named.valid])
    named = named.prepared(task.prepare)
    return PictureRecords(named.train, held_out=named.held_out), PictureRecords(named.valid)


def render_later(scenes: Sequence[Captioned], size: int, language: Language) -> PictureRecords:
    """Records of scenes, whose pictures are rendered on access."""
    pictures = [Drawing(scene, size, language) for scene in scenes]
    return PictureRecords([picture.record for picture in pictures], pictures)


def write_samples(pictures: Sequence[Drawing]) -> Mapping[str, bytes]:
    """Files of a few validation pictures, and the table of their captions."""
    few = pictures[:SHOWN]
    files = {f"samples/{number}.png": png(sample()) for number, sample in enumerate(few, 1)}
    lines = "".join(f"{number}.png\t{sample.caption.text}\n" for number, sample in enumerate(few, 1))
    return {**files, "samples/captions.tsv": lines.encode()} if few else {}


def build(config: PictureConfig, codec: ImageTextCodec) -> Seq2Seq:
    """The model that a config describes, for the vocabulary of a codec."""
    return build_network(config, codec.target.size, (codec.mean, codec.deviation))


def build_network(config: PictureConfig, vocabulary: int, standard: tuple[Sequence[float], Sequence[float]]) -> Seq2Seq:
    """The model that a config describes, for a vocabulary size, and for channels of this mean and deviation."""
    data, longest = config.data, max(config.data.max_target_length, config.search.max_length + 1)
    box = data.height, data.width
    return image2seq.build(config.model, config.dropout, vocabulary, box, standard, longest)


def build_small(config: PictureConfig) -> Seq2Seq:
    """The model of a config for a small vocabulary: validates the settings of model and data."""
    if config.data.channels not in (1, 3):
        raise ConfigError(f"data.channels needs to be 3, in colour, or 1, grey, got {config.data.channels}")
    parse_augmentation(config.data.augment)
    return build_network(config, 8, ((0.5,) * config.data.channels, (0.5,) * config.data.channels))


def read(data: ImageTextData, path: str) -> list[Record]:
    """The records of a table."""
    return list(table.read(path, data.image, data.text, bounds=bounds(data), settings=table_settings(data)))


def load_codec(directory: Traversable) -> ImageTextCodec:
    """The codec of a run directory."""
    return ImageTextCodec.load(directory)


def build_predictor(
    task: BoundTask, config: PictureConfig, codec: ImageTextCodec, model: Seq2Seq, head: Head
) -> "SequencePredictor":
    """The predictor of a model."""
    from regard.inference.sequence_predictor import SequencePredictor

    return SequencePredictor(task, config, codec, model, head)


def measure_model(trained: "SequencePredictor", examples: Sequence[object]) -> dict[str, Measurement]:
    """Pointing accuracy, for synthetic pictures."""
    return measure_pointing(trained, examples)
