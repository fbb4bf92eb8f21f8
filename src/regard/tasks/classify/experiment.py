"""Classifying: a picture or a clip in, the label that it has out, or those that it has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from regard.alignment.heads import Head
from regard.config import ImageDropout
from regard.data import table
from regard.data.codec import Report
from regard.data.image.batch import Images
from regard.data.image.synthetic import boxes, motion
from regard.data.image.types import ImageBatch
from regard.data.image.writing import png
from regard.data.lines import bounds
from regard.data.modality import AnyBatch
from regard.data.records import Record
from regard.data.split import HeldOut
from regard.errors import ConfigError, DataError
from regard.losses.classification import multi_label_loss, single_label_loss
from regard.losses.types import Loss, Progress
from regard.models.attention_factory import build_attention
from regard.models.encoders.image import ChannelStatistics, build_standardising_encoder
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.glimpse_model import Glimpses
from regard.tasks.classify.glimpse_predictor import Glimpser
from regard.tasks.classify.loss import glimpses
from regard.tasks.classify.model import Labels, Pooled
from regard.tasks.classify.predictor import LOOKS, Classifier, answer, labelled, wanted
from regard.tasks.classify.synthetic import RADII, Drawn, Moving
from regard.tasks.classify.video_model import Frames
from regard.tasks.classify.video_predictor import Watcher
from regard.tasks.kinds.image import assemble, checked, plain
from regard.tasks.kinds.tables import pictures, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.training.experiment import Experiment

SHOWN = 8
"""How many pictures of its own a training leaves to begin with."""


@dataclass(frozen=True)
class ClassifyConfig(TaskConfig):
    """Everything that a task can be told that gives pictures labels."""

    FAMILY: ClassVar[str] = "regard.tasks.classify.experiment"
    WRITES: ClassVar[bool] = False

    data: ClassifyData = field(default_factory=ClassifyData)
    model: ClassifyModel = field(default_factory=ClassifyModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


class Records(NamedTuple):
    """Records, and what draws their pictures where these are no files; and what of their table is held out."""

    records: list[Record]
    drawn: Sequence[Drawn | Moving] | None = None
    held_out: HeldOut | None = None


def experiment(name: str, task: Task, config: ClassifyConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records."""
    from regard.inference.init_from import start  # it opens runs, and their tasks

    begin, data = start(config, load_codec, out), settled(config)
    first, second = records(task, config)
    known = first.records if first.held_out is None else [*first.records, *second.records]  # all labels of the one table
    codec = begin.codec if begin else LabelCodec.fit(known, data, stride(config))
    training, valid = (codec.encode_all(each.records, each.drawn) for each in (first, second))
    codec.cache_images(valid.examples)  # what cannot be read is told before anything is trained
    figures = ["loss", "accuracy", *["f1"] * codec.several, *[LOOKS] * points(config)]
    return assemble(
        name,
        config,
        begin,
        codec,
        training.examples,
        valid.examples,
        training.report._replace(held_out=first.held_out),
        Costs(codec, config),
        figures,
        samples(second.drawn or ()),
    )


def several(data: ClassifyData, glimpses: int = 0) -> bool:
    """Whether a picture may have several labels: as data.multi_label says, else as drawn scenes have them, and no table."""
    if data.multi_label is not None:
        return data.multi_label
    return data.train is None and not data.clips and not glimpses


def settled(config: ClassifyConfig) -> ClassifyData:
    """The data of a config, whose `several` is yes or no."""
    return replace(config.data, multi_label=several(config.data, config.model.glimpses))


def stride(config: ClassifyConfig) -> int:
    """The pixels on a side of what one weight is about."""
    return 1 if config.model.glimpses else config.model.stride


def points(config: ClassifyConfig) -> bool:
    """Whether it is known where the model should look."""
    return config.data.train is None and not config.model.glimpses and config.model.attention.name != "none"


def records(task: Task, config: ClassifyConfig) -> tuple[Records, Records]:
    """What to train on and what to validate with: the files that are named, or what is drawn."""
    found = tables(settled(config), read, "clip" if config.data.clips else "picture", pictures)
    if found is None:
        training, valid = drawn(task, config)
        return Records([each.record for each in training], training), Records([each.record for each in valid], valid)
    found = found.prepared(task.prepare)
    return Records(found.train, held_out=found.held_out), Records(found.valid)


def drawn(task: Task, config: ClassifyConfig) -> tuple[Sequence[Drawn | Moving], Sequence[Drawn | Moving]]:
    """Clips of motions, scenes of one thing where each has one label, and otherwise what the task draws."""
    data, size = config.data, min(config.data.height, config.data.width)
    if data.clips:
        clips = motion.draw(data.samples)
        return [Moving(each, size, data.language) for each in clips[0]], [
            Moving(each, size, data.language) for each in clips[1]
        ]
    scenes = task.draw(data.samples, 0) if settled(config).multi_label else boxes.draw(data.samples, most=1, radii=RADII)
    return [Drawn(each, size, data.language) for each in scenes[0]], [Drawn(each, size, data.language) for each in scenes[1]]


@dataclass(frozen=True)
class Costs:
    """What the labels of a batch cost."""

    codec: LabelCodec
    config: ClassifyConfig
    capturable: bool = True

    def __call__(self, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
        assert isinstance(batch, ImageBatch), "pictures come in batches of pictures"
        smoothing = self.config.train.label_smoothing
        if self.config.model.glimpses:
            return looks(model, batch, self.config.model.episodes, smoothing)
        logits = answer(model, batch).logits
        if self.codec.several:
            return multi_label_loss(logits, wanted(batch, len(self.codec.labels)), smoothing)
        return single_label_loss(logits, labelled(batch).data[:, 0], smoothing)


def looks(model: nn.Module, batch: ImageBatch, copies: int, smoothing: float) -> Loss:
    """What the glimpses at a batch cost, the mean over so many ways of looking at each picture."""
    data, keep = batch.source
    names = labelled(batch).data[:, 0]
    found = glimpses(
        model(Images(data.repeat(copies, 1, 1, 1), keep.repeat(copies, 1, 1))), names.repeat(copies), smoothing=smoothing
    )
    return Loss(found.total / copies, len(names), {name: value / copies for name, value in found.parts.items()})


def samples(pictures: Sequence[Callable[[], Tensor]]) -> Mapping[str, bytes]:
    """A few pictures that the training does not see, or folders of frames, and the table that says what they are."""
    few: Any = pictures[:SHOWN]
    files, lines = dict[str, bytes](), []
    for number, each in enumerate(few, 1):
        made = each()
        named = f"{number}" if made.dim() == 4 else f"{number}.png"
        frames = {f"/{place}.png": frame for place, frame in enumerate(made, 1)} if made.dim() == 4 else {"": made}
        files |= {f"samples/{named}{end}": png(frame) for end, frame in frames.items()}
        lines.append(f"{named}\t{each.record.target}\n")
    return {**files, "samples/labels.tsv": "".join(lines).encode()} if few else {}


def build(config: ClassifyConfig, codec: LabelCodec) -> nn.Module:
    """The model that a config describes, for the labels of a codec."""
    return network(config, len(codec.labels), (codec.mean, codec.deviation))


def network(config: ClassifyConfig, labels: int, standard: ChannelStatistics) -> nn.Module:
    """The model that a config describes: glimpses, clips, a query for each label or, without attention, a map's mean."""
    model, dropout = config.model, config.dropout
    if model.glimpses:
        how: dict[str, Any] = {"side": model.glimpse_size, "scales": model.glimpse_scales, "size": model.hidden_size}
        how |= {"deviation": model.location_std, "core": model.core}
        return Glimpses(labels, len(standard[0]), steps=model.glimpses, standard=standard, **how)
    encoder, part = build_standardising_encoder(model, dropout, standard), model.attention
    make = partial(build_attention, part.name, heads=part.heads, size=part.size, dropout=dropout.attention)
    if config.data.clips:
        return Frames(encoder, labels, model.hidden_size, heads=model.heads, space=make, time=make, dropout=dropout.residual)
    if part.name == "none":
        return Pooled(encoder, labels, dropout.encoder)
    return Labels(encoder, labels, model.hidden_size, make)


def outline(config: ClassifyConfig) -> nn.Module:
    """The model of a config for a few labels, to see whether it can be built; and whether its data can be read."""
    checked(config)
    if config.model.glimpses and (config.data.clips or settled(config).multi_label):
        what = "clips (data.clips)" if config.data.clips else "several labels a picture (data.multi_label)"
        raise ConfigError(f"model.glimpses={config.model.glimpses} is for pictures that have one label, not for {what}")
    return network(config, 3, plain(config))


def read(data: ClassifyData, path: str) -> list[Record]:
    """The records of a table; where pictures may have no label, some must: else it is the table that has none."""
    records = list(table.read(path, data.image, data.label, need_target=not several(data), bounds=bounds(data)))
    if all(record.target is None for record in records):
        raise DataError(
            f"{path} has no label on any of its {len(records):,} lines, and labels are in column {data.label}; put a tab "
            "between the picture and its labels, or name their column with data.label"
        )
    return records


def load_codec(directory: Traversable) -> LabelCodec:
    """What a run has beside its weights."""
    return LabelCodec.load(directory)


def build_predictor(task: BoundTask, config: ClassifyConfig, codec: LabelCodec, model: nn.Module, head: Head) -> Classifier:
    """Predictor of a model."""
    kind = Glimpser if config.model.glimpses else Watcher if config.data.clips else Classifier
    return kind(task, config, codec, model)
