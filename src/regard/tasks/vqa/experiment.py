"""Asking: a picture and a question in, the answer out."""

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
from regard.data.image.synthetic.questions import Asked
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
from regard.tasks.vqa import data as inquiry
from regard.tasks.vqa.codec import AskedCodec
from regard.tasks.vqa.config import VqaData, VqaModel
from regard.tasks.vqa.data import Inquiry, places
from regard.tasks.vqa.model import Stacked
from regard.tasks.vqa.predictor import LOOKS, Answerer
from regard.tasks.vqa.synthetic import Drawn
from regard.training.experiment import Experiment

FIGURES = ("loss", "accuracy")
SHOWN = 8
"""How many pictures of its own a training leaves to begin with."""


@dataclass(frozen=True)
class AskConfig(TaskConfig):
    """Everything that a task can be told that answers questions about pictures."""

    FAMILY: ClassVar[str] = "regard.tasks.vqa.experiment"
    WRITES: ClassVar[bool] = False
    SIDE: ClassVar[int] = 64
    """The most pixels on a side of a picture that is drawn."""

    data: VqaData = field(default_factory=VqaData)
    model: VqaModel = field(default_factory=VqaModel)
    dropout: ImageDropout = field(default_factory=ImageDropout)


def experiment(name: str, task: Task, config: AskConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records."""
    from regard.inference.init_from import start  # it opens runs, and their tasks

    begin, named = start(config, load_codec, out), tables(config.data, read, "picture", seen)
    drawn: Sequence[Sequence[Drawn] | None] = (None, None) if named else draw(task, config)
    first, second = ([each.record for each in part or ()] for part in drawn)
    found = (named or Tables(first, second)).prepared(task.prepare)
    first, second = found.train, found.valid
    if named:
        present(places([*first, *second]))
    learned = found.known if named else [*first, *second]  # what is drawn has few answers, and all are known
    codec = begin.codec if begin else AskedCodec.fit(learned, config.data, config.model.stride)
    training = codec.encode_all(first, drawn[0], config.data.over_long)
    valid = codec.encode_all(second, drawn[1])  # every record is judged
    return assemble(
        name,
        config,
        begin,
        codec,
        training.examples,
        valid.examples,
        training.report._replace(held_out=found.held_out),
        partial(costs, config.train.label_smoothing),
        FIGURES if named else (*FIGURES, LOOKS),
        samples(drawn[1] or ()),
    )


def seen(asked: Sequence[Inquiry]) -> list[str]:
    """The picture that each question is about."""
    return pictures([each.picture for each in asked])


def draw(task: Task, config: AskConfig) -> tuple[list[Drawn], list[Drawn]]:
    """What a task draws itself, at the size that pictures are read, or smaller."""
    data = config.data
    parts: Sequence[Sequence[Asked]] = task.draw(data.samples, seed=0)
    size = min(data.height, data.width, config.SIDE)
    training, valid = ([Drawn(each, size, data.language) for each in part] for part in parts)
    return training, valid


def costs(smoothing: float, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
    """What the answers to a batch cost."""
    assert isinstance(batch, ImageBatch), "pictures come in batches of pictures"
    logits = model(batch.source, batch.question, about=batch.about).logits
    return single_label_loss(logits, labelled(batch).data[:, 0], smoothing)


def samples(asked: Sequence[Drawn]) -> Mapping[str, bytes]:
    """A few pictures that the training does not see, and the table with what is asked of them, and right."""
    names = list(dict.fromkeys(each.record.where for each in asked))[:SHOWN]
    numbers = {name: number for number, name in enumerate(names, 1)}
    few = [each for each in asked if each.record.where in numbers]
    files = {f"samples/{numbers[each.record.where]}.png": png(each()) for each in few}
    lines = [f"{numbers[each.where]}.png\t{each.question}\t{each.target}\n" for each in (one.record for one in few)]
    return {**files, "samples/questions.tsv": "".join(lines).encode()} if few else {}


def build(config: AskConfig, codec: AskedCodec) -> nn.Module:
    """The model that a config describes, for the questions and answers of a codec."""
    return network(config, codec.question.size, len(codec.answers), (codec.mean, codec.deviation))


def network(config: AskConfig, vocabulary: int, answers: int, standard: ChannelStatistics) -> Stacked:
    """The model that a config describes, for so many words and answers."""
    model, dropout = config.model, config.dropout
    part = model.attention
    options: dict[str, Any] = {"heads": part.heads, "size": part.size, "dropout": dropout.attention}
    return Stacked(
        build_standardising_encoder(model, dropout, standard),
        reader(config, vocabulary),
        answers,
        model.hidden_size,
        hops=model.hops,
        words=partial(build_attention, model.word_attention, **options),
        regions=partial(build_attention, part.name, **options),
        dropout=dropout.residual,
    )


def reader(config: AskConfig, vocabulary: int) -> Recurrent | Transformer:
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
    made = Transformer(vocabulary, model.hidden_size, positions=positions, **options)
    initialise(made)
    return made


def outline(config: AskConfig) -> nn.Module:
    """The model of a config for a few words, to see whether it can be built; and whether its data can be read."""
    checked(config)
    if config.data.max_question_length < 2:
        raise ConfigError("data.max_question_length needs to be 2 or more, a token and the end, got 1")
    return network(config, 8, 3, plain(config))


def read(data: VqaData, path: str) -> list[Inquiry]:
    """The questions of a table."""
    return inquiry.read(data, path)


def load_codec(directory: Traversable) -> AskedCodec:
    """What a run has beside its weights."""
    return AskedCodec.load(directory)


def build_predictor(task: BoundTask, config: AskConfig, codec: AskedCodec, model: nn.Module, head: Head) -> Answerer:
    """Predictor of a model."""
    return Answerer(task, config, codec, model)
