"""Detecting: a picture in, what is on it and where out."""

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
from regard.models.attention_factory import build_attention
from regard.models.detections import add_noise
from regard.models.encoders.image import ChannelStatistics, build_standardising_encoder
from regard.tasks.detect import data as annotations
from regard.tasks.detect.codec import ObjectCodec
from regard.tasks.detect.config import DetectData, DetectModel
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.loss import SetLoss
from regard.tasks.detect.model import Detector as Network
from regard.tasks.detect.predictor import Detector, things
from regard.tasks.detect.synthetic import Drawn
from regard.tasks.kinds.image import assemble, checked, plain
from regard.tasks.kinds.tables import Tables, pictures, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.training.experiment import Experiment

FIGURES = ("loss", "map50", "map")
SHOWN = 8
"""How many pictures of its own a training leaves to begin with."""


@dataclass(frozen=True)
class DetectConfig(TaskConfig):
    """Everything that a task can be told that finds things."""

    FAMILY: ClassVar[str] = "regard.tasks.detect.experiment"
    WRITES: ClassVar[bool] = False

    data: DetectData = field(default_factory=DetectData)
    model: DetectModel = field(default_factory=DetectModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


def experiment(name: str, task: Task, config: DetectConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the pictures."""
    from regard.inference.init_from import start  # it opens runs, and their tasks

    begin, found = start(config, load_codec, out), tables(config.data, read, "picture", seen)
    drawn: list[list[Drawn]] | None = None
    if found is None:
        parts = task.draw(config.data.samples, seed=0)
        drawn = [[replace(each, language=config.data.language) for each in part] for part in parts]
        first, second = ([each.annotated for each in part] for part in drawn)
        found = Tables(first, second)
    else:
        present(each.record for each in [*found.train, *found.valid])
    codec = begin.codec if begin else ObjectCodec.fit(found.known, config.data, config.model.stride)
    both = zip((found.train, found.valid), drawn or (None, None), strict=True)
    training, valid = (codec.encode_all(table, part) for table, part in both)
    enough([*training.examples, *valid.examples], config.model.queries)
    cost = partial(costs, SetLoss(), len(codec.labels), config.model.denoising_groups)
    beside = samples(drawn[1]) if drawn else {}
    report = training.report._replace(held_out=found.held_out)
    return assemble(name, config, begin, codec, training.examples, valid.examples, report, cost, FIGURES, beside)


def seen(given: Sequence[Annotated]) -> list[str]:
    """The picture of each line."""
    return pictures([each.record for each in given])


def enough(examples: Sequence[ImageExample], queries: int) -> None:
    """Raise where a picture has more things than queries can find."""
    for each in examples:
        if each.labels is not None and len(each.labels) > queries:
            raise ConfigError(
                f"model.queries={queries} is the most things that can be found, and {each.record.where} has "
                f"{len(each.labels)}; give model.queries={len(each.labels)} or more"
            )


def costs(loss: SetLoss, labels: int, groups: int, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
    """What is found on a batch costs, and what is left of noise."""
    assert isinstance(batch, ImageBatch), "pictures come in batches of pictures"
    objects = things(batch)
    given = add_noise(objects, labels, groups) if groups and objects.keep.shape[1] else None
    return loss(model(batch.source, noised=given), objects)


def samples(pictures: Sequence[Drawn]) -> Mapping[str, bytes]:
    """A few pictures that the training does not see, and the table that says what is on them."""
    few = list(enumerate(pictures[:SHOWN], 1))
    files = {f"samples/{number}.png": png(each()) for number, each in few}
    rows = [{"image": f"{number}.png", **_things(each.annotated)} for number, each in few]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return {**files, "samples/objects.jsonl": lines.encode()} if few else {}


def _things(given: Annotated) -> Mapping[str, object]:
    return {"labels": given.labels, "boxes": given.boxes}


def build(config: DetectConfig, codec: ObjectCodec) -> nn.Module:
    """The model that a config describes, for the labels of a codec."""
    return network(config, len(codec.labels), (codec.mean, codec.deviation))


def network(config: DetectConfig, labels: int, standard: ChannelStatistics) -> Network:
    """The model that a config describes."""
    model, dropout, part = config.model, config.dropout, config.model.attention
    make = partial(build_attention, part.name, heads=part.heads, size=part.size, dropout=dropout.attention)
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


def outline(config: DetectConfig) -> nn.Module:
    """The model of a config for a few labels, to see whether it can be built; and whether its data can be read."""
    checked(config)
    return network(config, 3, plain(config))


def read(data: DetectData, path: str) -> list[Annotated]:
    """The pictures of a table, and what is on them."""
    return annotations.read(path, data)


def load_codec(directory: Traversable) -> ObjectCodec:
    """What a run has beside its weights."""
    return ObjectCodec.load(directory)


def build_predictor(task: BoundTask, config: DetectConfig, codec: ObjectCodec, model: nn.Module, head: Head) -> Detector:
    """Predictor of a model."""
    return Detector(task, config, codec, model)
