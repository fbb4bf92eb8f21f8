"""Classifying: a picture in, the label that it has out, or those that it has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.alignment.head import Head
from regard.config import ClassifyData, PictureDropout, SightModel
from regard.data import table
from regard.data.drawn.labelled import Drawn
from regard.data.image.labelled import LabelCodec
from regard.data.image.pictured import PictureBatch
from regard.data.image.reading import present
from regard.data.image.writing import png
from regard.data.record import Record
from regard.data.text import Report
from regard.families import Task, TaskConfig
from regard.families.sights import assemble, checked, plain
from regard.families.tables import paths
from regard.models.attentions import attention
from regard.models.encoders.sighted import Standard, sighted
from regard.models.pictures.labels import Labels
from regard.models.pictures.pooled import Pooled
from regard.seeing.classifier import Classifier, labelled, wanted
from regard.training.experiment import AnyBatch, Experiment, Loss, Progress
from regard.training.labels import any_labels, one_label

FIGURES = ("loss", "accuracy", "f1")
SHOWN = 8
"""How many pictures of its own a training leaves to begin with."""


@dataclass(frozen=True)
class ClassifyConfig(TaskConfig):
    """Everything that a task can be told that gives pictures labels."""

    FAMILY: ClassVar[str] = "regard.families.classifying"
    WRITES: ClassVar[bool] = False

    data: ClassifyData = field(default_factory=ClassifyData)
    model: SightModel = field(default_factory=SightModel)
    dropout: PictureDropout = field(default_factory=PictureDropout)


def experiment(name: str, task: Task, config: ClassifyConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records."""
    from regard.start import start  # it opens runs, and their tasks

    begin, both = start(config, out), paths(config.data)
    drawn: Sequence[Sequence[Drawn] | None] = (None, None) if both else task.draw(config.data.samples, seed=0)
    if both:
        tables = [[task.prepare(each) for each in read(config.data, path)] for path in both]
        present([*tables[0], *tables[1]])
    else:
        tables = [[each.record for each in part or ()] for part in drawn]
    codec = begin.codec if begin else LabelCodec.fit(tables[0], config.data, config.model.stride)
    training, valid = (codec.encode_all(records, part) for records, part in zip(tables, drawn, strict=True))
    cost = partial(costs, codec, config.train.smoothing)
    return assemble(
        name,
        config,
        begin,
        codec,
        training.examples,
        valid.examples,
        training.report,
        cost,
        FIGURES,
        samples(drawn[1] or ()),
    )


def costs(codec: LabelCodec, smoothing: float, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
    """What the labels of a batch cost."""
    assert isinstance(batch, PictureBatch), "pictures come in batches of pictures"
    logits = model(batch.source).logits
    if codec.several:
        return any_labels(logits, wanted(batch, len(codec.labels)), smoothing)
    return one_label(logits, labelled(batch).data[:, 0], smoothing)


def samples(pictures: Sequence[Drawn]) -> Mapping[str, bytes]:
    """A few pictures that the training does not see, and the table that says what they are."""
    few = pictures[:SHOWN]
    files = {f"samples/{number}.png": png(each()) for number, each in enumerate(few, 1)}
    lines = "".join(f"{number}.png\t{each.record.target}\n" for number, each in enumerate(few, 1))
    return {**files, "samples/labels.tsv": lines.encode()} if few else {}


def build(config: ClassifyConfig, codec: LabelCodec) -> nn.Module:
    """The model that a config describes, for the labels of a codec."""
    return network(config, len(codec.labels), (codec.mean, codec.deviation))


def network(config: ClassifyConfig, labels: int, standard: Standard) -> nn.Module:
    """The model that a config describes: a query for each label or, without attention, the mean of the map."""
    model, dropout = config.model, config.dropout
    encoder = sighted(model, dropout, standard)
    if model.attention.name == "none":
        return Pooled(encoder, labels, dropout.encoder)
    part = model.attention
    make = partial(attention, part.name, heads=part.heads, size=part.size, dropout=dropout.attention)
    return Labels(encoder, labels, model.size, make)


def outline(config: ClassifyConfig) -> nn.Module:
    """The model of a config for a few labels, to see whether it can be built; and whether its data can be read."""
    checked(config)
    return network(config, 3, plain(config))


def read(data: ClassifyData, path: str) -> list[Record]:
    """The records of a table."""
    return list(table.read(path, data.image, data.label, need_target=not data.several))


def codec(directory: Path) -> LabelCodec:
    """What a run has beside its weights."""
    return LabelCodec.load(directory)


def opened(name: str, config: ClassifyConfig, codec: LabelCodec, model: nn.Module, head: Head) -> Classifier:
    """The model, ready to be asked."""
    return Classifier(name, config, codec, model)
