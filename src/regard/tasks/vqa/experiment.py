"""Visual question answering: a picture and a question in, the answer out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from regard import registry
from regard.alignment.heads import Head
from regard.config import ImageDropout
from regard.data.codec import Report
from regard.data.image.reading import present
from regard.data.image.synthetic.questions import SceneQuestion
from regard.data.image.types import ImageBatch
from regard.data.image.writing import png
from regard.data.modality import AnyBatch
from regard.errors import ConfigError
from regard.losses.classification import single_label_loss
from regard.losses.types import Loss, Progress
from regard.models.attention_factory import build_attention
from regard.models.encoders.image import ChannelStatistics, build_standardising_encoder
from regard.models.encoders.recurrent import Recurrent
from regard.models.encoders.transformer import Transformer
from regard.models.seq2seq import initialise
from regard.tasks.classify.predictor import labelled
from regard.tasks.kinds.image import assemble, checked, plain
from regard.tasks.kinds.tables import Tables, pictures, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.tasks.vqa import data as question_tables
from regard.tasks.vqa.codec import QuestionCodec
from regard.tasks.vqa.config import VqaData, VqaModel
from regard.tasks.vqa.data import PictureQuestion, distinct_pictures
from regard.tasks.vqa.model import Stacked
from regard.tasks.vqa.predictor import LOOKS, Answerer
from regard.tasks.vqa.synthetic import SyntheticQuestion
from regard.training.experiment import Experiment

FIGURES = ("loss", "accuracy")
SHOWN = 8
"""Synthetic pictures that a run directory keeps as samples."""


@dataclass(frozen=True)
class VqaConfig(TaskConfig):
    """Settings of visual question answering."""

    FAMILY: ClassVar[str] = "regard.tasks.vqa.experiment"
    WRITES: ClassVar[bool] = False
    SIDE: ClassVar[int] = 64
    """Most pixels on a side of a synthetic picture."""

    data: VqaData = field(default_factory=VqaData)
    model: VqaModel = field(default_factory=VqaModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


def experiment(name: str, task: Task, config: VqaConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, named = start(config, load_codec, out), tables(config.data, read, "picture", picture_paths)
    synthetic: Sequence[Sequence[SyntheticQuestion] | None] = (None, None) if named else synthesise_samples(task, config)
    first, second = ([sample.record for sample in part or ()] for part in synthetic)
    both = (named or Tables(first, second)).prepared(task.prepare)
    first, second = both.train, both.valid
    if named:
        present(distinct_pictures([*first, *second]))
    known = both.known if named else [*first, *second]  # synthetic data has few answers, all known
    codec = begin.codec if begin else QuestionCodec.fit(known, config.data, config.model.stride)
    training = codec.encode_all(first, renderers=synthetic[0])
    valid = codec.encode_all(second, "truncate", synthetic[1])  # every record is evaluated
    return assemble(
        name,
        config,
        begin,
        codec,
        training.examples,
        valid.examples,
        training.report._replace(held_out=both.held_out),
        partial(compute_loss, config.train.label_smoothing),
        FIGURES if named else (*FIGURES, LOOKS),
        write_samples(synthetic[1] or ()),
    )


def picture_paths(questions: Sequence[PictureQuestion]) -> list[str]:
    """Paths of the pictures of questions."""
    return pictures([question.picture for question in questions])


def synthesise_samples(task: Task, config: VqaConfig) -> tuple[list[SyntheticQuestion], list[SyntheticQuestion]]:
    """Synthetic questions of the task, rendered at the size that pictures are read, or smaller."""
    data = config.data
    parts: Sequence[Sequence[SceneQuestion]] = task.synthesise(data.samples, seed=0)
    size = min(data.height, data.width, config.SIDE)
    training, valid = ([SyntheticQuestion(sample, size, data.language) for sample in part] for part in parts)
    return training, valid


def compute_loss(smoothing: float, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
    """Cross-entropy of the answers of a batch."""
    assert isinstance(batch, ImageBatch), "pictures come in batches of pictures"
    logits = model(batch.source, batch.question, about=batch.about).logits
    return single_label_loss(logits, labelled(batch).data[:, 0], smoothing)


def write_samples(questions: Sequence[SyntheticQuestion]) -> Mapping[str, bytes]:
    """Files of a few validation pictures, and the table of their questions and answers."""
    names = list(dict.fromkeys(question.record.where for question in questions))[:SHOWN]
    numbers = {name: number for number, name in enumerate(names, 1)}
    few = [question for question in questions if question.record.where in numbers]
    files = {f"samples/{numbers[sample.record.where]}.png": png(sample()) for sample in few}
    lines = [f"{numbers[sample.where]}.png\t{sample.question}\t{sample.target}\n" for sample in (one.record for one in few)]
    return {**files, "samples/questions.tsv": "".join(lines).encode()} if few else {}


def build(config: VqaConfig, codec: QuestionCodec) -> nn.Module:
    """The model that a config describes, for the questions and answers of a codec."""
    return build_network(config, codec.question.size, len(codec.answers), (codec.mean, codec.deviation))


def build_network(config: VqaConfig, vocabulary: int, answers: int, standard: ChannelStatistics) -> Stacked:
    """The model that a config describes, for a vocabulary size and a number of answers."""
    model, dropout = config.model, config.dropout
    part = model.attention
    options: dict[str, Any] = {"heads": part.heads, "size": part.size, "dropout": dropout.attention}
    return Stacked(
        build_standardising_encoder(model, dropout, standard),
        build_question_encoder(config, vocabulary),
        answers,
        model.hidden_size,
        hops=model.hops,
        words=partial(build_attention, model.word_attention, **options),
        regions=partial(build_attention, part.name, **options, parameters=part.parameters),
        dropout=dropout.residual,
    )


def build_question_encoder(config: VqaConfig, vocabulary: int) -> Recurrent | Transformer:
    """The encoder of questions."""
    model, dropout = config.model, config.dropout
    options: dict[str, Any] = {"layers": model.question_layers}
    options |= {"drop_embedding": dropout.embedding, "drop_residual": dropout.residual}
    if model.question_encoder == "recurrent":
        return Recurrent(vocabulary, model.hidden_size, variational=dropout.variational, **options)
    positions = None
    if model.positions != "none":
        positions = registry.build(
            model.positions, "positions", size=model.hidden_size, limit=config.data.max_question_length
        )
    options |= {"heads": model.heads, "self_attention": model.self_attention, "drop_attention": dropout.attention}
    options |= {"inner": model.feedforward_size, "activation": model.activation, "norm": model.norm}
    encoder = Transformer(vocabulary, model.hidden_size, positions=positions, **options)
    initialise(encoder)
    return encoder


def build_small(config: VqaConfig) -> nn.Module:
    """The model of a config for a small vocabulary: validates the settings of model and data."""
    checked(config)
    if config.data.max_question_length < 2:
        raise ConfigError("data.max_question_length needs to be 2 or more, a token and the end, got 1")
    return build_network(config, 8, 3, plain(config))


def read(data: VqaData, path: str) -> list[PictureQuestion]:
    """The questions of a table."""
    return question_tables.read(data, path)


def load_codec(directory: Traversable) -> QuestionCodec:
    """The codec of a run directory."""
    return QuestionCodec.load(directory)


def build_predictor(task: BoundTask, config: VqaConfig, codec: QuestionCodec, model: nn.Module, head: Head) -> Answerer:
    """The predictor of a model."""
    return Answerer(task, config, codec, model)
