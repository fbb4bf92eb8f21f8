"""Object detection: a picture in, labelled boxes out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.alignment.heads import Head
from regard.config import ImageDropout
from regard.data.codec import Report
from regard.data.image.reading import present
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.image.writing import png
from regard.data.modality import AnyBatch
from regard.errors import ConfigError
from regard.losses.types import Loss, Progress
from regard.models.attention_factory import attention_options, build_attention
from regard.models.detections import add_noise
from regard.models.encoders.image import ChannelStatistics, build_standardising_encoder
from regard.tasks.detect import data as tables_of_objects
from regard.tasks.detect.codec import ObjectCodec
from regard.tasks.detect.config import DetectData, DetectModel
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.loss import SetLoss
from regard.tasks.detect.model import Detector as Network
from regard.tasks.detect.predictor import Detector, things
from regard.tasks.detect.synthetic import SyntheticScene
from regard.tasks.kinds.image import assemble, checked, plain
from regard.tasks.kinds.tables import Tables, pictures, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.training.experiment import Experiment

FIGURES = ("loss", "map50", "map")
SHOWN = 8
"""Synthetic pictures that a run directory keeps as samples."""


@dataclass(frozen=True)
class DetectConfig(TaskConfig):
    """Settings of detection tasks."""

    FAMILY: ClassVar[str] = "regard.tasks.detect.experiment"
    WRITES: ClassVar[bool] = False

    data: DetectData = field(default_factory=DetectData)
    model: DetectModel = field(default_factory=DetectModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


def experiment(name: str, task: Task, config: DetectConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded pictures."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, named = start(config, load_codec, out), tables(config.data, read, "picture", picture_paths)
    synthetic: list[list[SyntheticScene]] | None = None
    if named is None:
        parts = task.synthesise(config.data.samples, seed=0)
        synthetic = [[replace(sample, language=config.data.language) for sample in part] for part in parts]
        first, second = ([sample.annotated for sample in part] for part in synthetic)
        named = Tables(first, second)
    else:
        present(annotation.record for annotation in [*named.train, *named.valid])
    codec = begin.codec if begin else ObjectCodec.fit(named.known, config.data, config.model.stride)
    both = zip((named.train, named.valid), synthetic or (None, None), strict=True)
    training, valid = (codec.encode_all(table, renderers=part) for table, part in both)
    check_query_count([*training.examples, *valid.examples], config.model.queries)
    cost = partial(compute_loss, SetLoss(), len(codec.labels), config.model.denoising_groups)
    files = write_samples(synthetic[1]) if synthetic else {}
    report = training.report._replace(held_out=named.held_out)
    return assemble(name, config, begin, codec, training.examples, valid.examples, report, cost, FIGURES, files)


def picture_paths(annotations: Sequence[Annotated]) -> list[str]:
    """Paths of the pictures of a table."""
    return pictures([annotation.record for annotation in annotations])


def check_query_count(examples: Sequence[ImageExample], queries: int) -> None:
    """Raise where a picture has more objects than there are queries."""
    for example in examples:
        if example.labels is not None and len(example.labels) > queries:
            raise ConfigError(
                f"model.queries={queries} is the most objects that can be detected, and {example.record.where} has "
                f"{len(example.labels)}; set model.queries={len(example.labels)} or more"
            )


def compute_loss(loss: SetLoss, labels: int, groups: int, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
    """Set loss of a batch, with the denoising loss."""
    assert isinstance(batch, ImageBatch), "pictures come in batches of pictures"
    objects = things(batch)
    noised = add_noise(objects, labels, groups) if groups and objects.keep.shape[1] else None
    return loss(model(batch.source, noised=noised), objects)


def write_samples(pictures: Sequence[SyntheticScene]) -> Mapping[str, bytes]:
    """Files of a few validation pictures, and the table of their objects."""
    few = list(enumerate(pictures[:SHOWN], 1))
    files = {f"samples/{number}.png": png(sample()) for number, sample in few}
    rows = [{"image": f"{number}.png", **_as_columns(sample.annotated)} for number, sample in few]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return {**files, "samples/objects.jsonl": lines.encode()} if few else {}


def _as_columns(annotations: Annotated) -> Mapping[str, object]:
    return {"labels": annotations.labels, "boxes": annotations.boxes}


def build(config: DetectConfig, codec: ObjectCodec) -> nn.Module:
    """The model that a config describes, for the labels of a codec."""
    return build_network(config, len(codec.labels), (codec.mean, codec.deviation))


def build_network(config: DetectConfig, labels: int, standard: ChannelStatistics) -> Network:
    """The model that a config describes."""
    model, dropout, part = config.model, config.dropout, config.model.attention
    make = partial(build_attention, part.name, **attention_options(part), dropout=dropout.attention)
    return Network(
        build_standardising_encoder(model, dropout, standard),
        labels,
        model.hidden_size,
        queries=model.queries,
        layers=model.layers,
        heads=model.heads,
        inner=model.feedforward_size,
        attention=make,
        dropout=dropout.residual,
    )


def build_small(config: DetectConfig) -> nn.Module:
    """The model of a config for a few labels: validates the settings of model and data."""
    checked(config)
    return build_network(config, 3, plain(config))


def read(data: DetectData, path: str) -> list[Annotated]:
    """The annotated pictures of a table."""
    return tables_of_objects.read(path, data)


def load_codec(directory: Traversable) -> ObjectCodec:
    """The codec of a run directory."""
    return ObjectCodec.load(directory)


def build_predictor(task: BoundTask, config: DetectConfig, codec: ObjectCodec, model: nn.Module, head: Head) -> Detector:
    """The predictor of a model."""
    return Detector(task, config, codec, model)
