"""Classification: a picture or a clip in, one label or several out."""

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
from regard.data.header import table_settings
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
from regard.models.attention_factory import attention_options, build_attention
from regard.models.encoders.image import ChannelStatistics, build_standardising_encoder
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.glimpse_model import Glimpses
from regard.tasks.classify.glimpse_predictor import Glimpser
from regard.tasks.classify.loss import reinforce_loss
from regard.tasks.classify.model import Labels, Pooled
from regard.tasks.classify.predictor import LOOKS, Classifier, answer, labelled, mark_labels
from regard.tasks.classify.synthetic import RADII, SyntheticClip, SyntheticScene
from regard.tasks.classify.video_model import Frames
from regard.tasks.classify.video_predictor import Watcher
from regard.tasks.kinds.image import assemble, checked, plain
from regard.tasks.kinds.tables import pictures, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.training.experiment import Experiment

SHOWN = 8
"""Synthetic pictures that a run directory keeps as samples."""


@dataclass(frozen=True)
class ClassifyConfig(TaskConfig):
    """Settings of classification tasks."""

    FAMILY: ClassVar[str] = "regard.tasks.classify.experiment"
    WRITES: ClassVar[bool] = False

    data: ClassifyData = field(default_factory=ClassifyData)
    model: ClassifyModel = field(default_factory=ClassifyModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


class Records(NamedTuple):
    """Records, the renderers of their pictures where these are no files, and the held-out part of their table."""

    records: list[Record]
    renderers: Sequence[SyntheticScene | SyntheticClip] | None = None
    held_out: HeldOut | None = None


def experiment(name: str, task: Task, config: ClassifyConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, data = start(config, load_codec, out), resolve_data(config)
    first, second = load_records(task, config)
    known = first.records if first.held_out is None else [*first.records, *second.records]  # all labels of the one table
    codec = begin.codec if begin else LabelCodec.fit(known, data, weight_stride(config))
    training, valid = (codec.encode_all(sample.records, renderers=sample.renderers) for sample in (first, second))
    codec.cache_images(valid.examples)  # unreadable files are errors before training
    figures = ["loss", "accuracy", *["f1"] * codec.several, *[LOOKS] * knows_regions(config)]
    return assemble(
        name,
        config,
        begin,
        codec,
        training.examples,
        valid.examples,
        training.report._replace(held_out=first.held_out),
        ClassifyLoss(codec, config),
        figures,
        write_samples(second.renderers or ()),
    )


def is_multi_label(data: ClassifyData, glimpses: int = 0) -> bool:
    """Multi-label or not: as data.multi_label says; by default for synthetic scenes, but not for tables."""
    if data.multi_label is not None:
        return data.multi_label
    return data.train is None and not data.clips and not glimpses


def resolve_data(config: ClassifyConfig) -> ClassifyData:
    """The data of a config, whose `is_multi_label` is yes or no."""
    return replace(config.data, multi_label=is_multi_label(config.data, config.model.glimpses))


def weight_stride(config: ClassifyConfig) -> int:
    """Pixels on a side of the square that one weight stands for."""
    return 1 if config.model.glimpses else config.model.stride


def knows_regions(config: ClassifyConfig) -> bool:
    """True where the regions of labels are known, and an attention can be compared with them."""
    return config.data.train is None and not config.model.glimpses and config.model.attention.name != "none"


def load_records(task: Task, config: ClassifyConfig) -> tuple[Records, Records]:
    """Training and validation records: of the named files, or synthetic ones."""
    named = tables(resolve_data(config), read, "clip" if config.data.clips else "picture", pictures)
    if named is None:
        training, valid = synthesise_samples(task, config)
        return Records([sample.record for sample in training], training), Records([sample.record for sample in valid], valid)
    named = named.prepared(task.prepare)
    return Records(named.train, held_out=named.held_out), Records(named.valid)


def synthesise_samples(
    task: Task, config: ClassifyConfig
) -> tuple[Sequence[SyntheticScene | SyntheticClip], Sequence[SyntheticScene | SyntheticClip]]:
    """Synthetic clips of motions, scenes of one object where each has one label, else the scenes of the task."""
    data, size = config.data, min(config.data.height, config.data.width)
    if data.clips:
        clips = motion.draw(data.samples)
        return [SyntheticClip(sample, size, data.language) for sample in clips[0]], [
            SyntheticClip(sample, size, data.language) for sample in clips[1]
        ]
    scenes = (
        task.synthesise(data.samples, 0)
        if resolve_data(config).multi_label
        else boxes.draw(data.samples, most=1, radii=RADII)
    )
    return [SyntheticScene(scene, size, data.language) for scene in scenes[0]], [
        SyntheticScene(scene, size, data.language) for scene in scenes[1]
    ]


@dataclass(frozen=True)
class ClassifyLoss:
    """Cross-entropy of the labels of a batch; REINFORCE for models with glimpses."""

    codec: LabelCodec
    config: ClassifyConfig
    capturable: bool = True

    def __call__(self, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
        assert isinstance(batch, ImageBatch), "pictures come in batches of pictures"
        smoothing = self.config.train.label_smoothing
        if self.config.model.glimpses:
            return glimpse_loss(model, batch, self.config.model.episodes, smoothing)
        logits = answer(model, batch).logits
        if self.codec.several:
            return multi_label_loss(logits, mark_labels(batch, len(self.codec.labels)), smoothing)
        return single_label_loss(logits, labelled(batch).data[:, 0], smoothing)


def glimpse_loss(model: nn.Module, batch: ImageBatch, episodes: int, smoothing: float) -> Loss:
    """REINFORCE loss of a batch, the mean over several episodes of each picture."""
    data, keep = batch.source
    names = labelled(batch).data[:, 0]
    loss = reinforce_loss(
        model(Images(data.repeat(episodes, 1, 1, 1), keep.repeat(episodes, 1, 1))),
        names.repeat(episodes),
        smoothing=smoothing,
    )
    return Loss(loss.total / episodes, len(names), {name: value / episodes for name, value in loss.parts.items()})


def write_samples(pictures: Sequence[Callable[[], Tensor]]) -> Mapping[str, bytes]:
    """Files of a few validation pictures or clips, and the table of their labels."""
    few: Any = pictures[:SHOWN]
    files, lines = dict[str, bytes](), []
    for number, sample in enumerate(few, 1):
        rendered = sample()
        named = f"{number}" if rendered.dim() == 4 else f"{number}.png"
        frames = (
            {f"/{place}.png": frame for place, frame in enumerate(rendered, 1)} if rendered.dim() == 4 else {"": rendered}
        )
        files |= {f"samples/{named}{end}": png(frame) for end, frame in frames.items()}
        lines.append(f"{named}\t{sample.record.target}\n")
    return {**files, "samples/labels.tsv": "".join(lines).encode()} if few else {}


def build(config: ClassifyConfig, codec: LabelCodec) -> nn.Module:
    """The model that a config describes, for the labels of a codec."""
    return build_network(config, len(codec.labels), (codec.mean, codec.deviation))


def build_network(config: ClassifyConfig, labels: int, standard: ChannelStatistics) -> nn.Module:
    """The model that a config describes: glimpses, clips, a query for each label or, without attention, global pooling."""
    model, dropout = config.model, config.dropout
    if model.glimpses:
        options: dict[str, Any] = {"side": model.glimpse_size, "scales": model.glimpse_scales, "size": model.hidden_size}
        options |= {"deviation": model.location_std, "core": model.core}
        return Glimpses(labels, len(standard[0]), steps=model.glimpses, standard=standard, **options)
    encoder, part = build_standardising_encoder(model, dropout, standard), model.attention
    make = partial(build_attention, part.name, **attention_options(part), dropout=dropout.attention)
    if config.data.clips:
        return Frames(encoder, labels, model.hidden_size, heads=model.heads, space=make, time=make, dropout=dropout.residual)
    if part.name == "none":
        return Pooled(encoder, labels, dropout.encoder)
    return Labels(encoder, labels, model.hidden_size, make)


def build_small(config: ClassifyConfig) -> nn.Module:
    """The model of a config for a few labels: validates the settings of model and data."""
    checked(config)
    if config.model.glimpses and (config.data.clips or resolve_data(config).multi_label):
        what = "clips (data.clips)" if config.data.clips else "several labels a picture (data.multi_label)"
        raise ConfigError(f"model.glimpses={config.model.glimpses} is for pictures that have one label, not for {what}")
    return build_network(config, 3, plain(config))


def read(data: ClassifyData, path: str) -> list[Record]:
    """The records of a table; in multi-label data a record may have no label, but not all of them."""
    records = list(
        table.read(
            path,
            data.image,
            data.label,
            need_target=not is_multi_label(data),
            bounds=bounds(data),
            settings=table_settings(data),
        )
    )
    if all(record.target is None for record in records):
        raise DataError(
            f"{path} has no label on any of its {len(records):,} lines, and labels are in column {data.label}; put a tab "
            "between the picture and its labels, or name their column with data.label"
        )
    return records


def load_codec(directory: Traversable) -> LabelCodec:
    """The codec of a run directory."""
    return LabelCodec.load(directory)


def build_predictor(task: BoundTask, config: ClassifyConfig, codec: LabelCodec, model: nn.Module, head: Head) -> Classifier:
    """The predictor of a model."""
    kind = Glimpser if config.model.glimpses else Watcher if config.data.clips else Classifier
    return kind(task, config, codec, model)
