"""Question answering: stories with questions, jointly over tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources.abc import Traversable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import nn

from regard import tasks
from regard.alignment.heads import Head
from regard.config import Dropout
from regard.data.codec import Report
from regard.errors import ConfigError, DataError
from regard.inference.forward_predictor import CachedExamples
from regard.metrics.text import LOWER_IS_BETTER
from regard.tasks.answer.batch import UNKNOWN, StoryExample, StoryLoader
from regard.tasks.answer.codec import StoryCodec
from regard.tasks.answer.config import AnswerModel, AnswerTrain, StoryData
from regard.tasks.answer.loss import AnswerLoss
from regard.tasks.answer.reading import read_stories
from regard.tasks.answer.records import StoryQuestion
from regard.tasks.answer.rules import RULES as RULES
from regard.tasks.kinds.tables import Tables, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.tasks.answer.predictor import StoryAnswerer

FIGURES = ("loss", "accuracy", "error", "facts", "best_hop")
"""Metrics that may be monitored; the last two where the supporting facts are known."""
SAMPLES = 4
"""Synthetic stories that a run directory keeps as samples."""


@dataclass(frozen=True)
class AnswerConfig(TaskConfig):
    """Settings of question answering over stories."""

    FAMILY: ClassVar[str] = "regard.tasks.answer.experiment"
    WRITES: ClassVar[bool] = False
    HEEDED: ClassVar[tuple[str, ...]] = ("train.cuda_graphs",)

    data: StoryData = field(default_factory=StoryData)
    model: AnswerModel = field(default_factory=AnswerModel)
    dropout: Dropout = field(default_factory=Dropout)
    train: AnswerTrain = field(default_factory=AnswerTrain)


def experiment(name: str, task: Task, config: AnswerConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, splits = start(config, load_codec, out), read_splits(task, config)
    codec = begin.codec if begin else StoryCodec.fit(splits.known, config.data)
    examples, report = codec.encode_all(splits.train)
    valid = codec.encode_all(splits.valid).examples
    check_examples(config, examples, valid)
    torch.manual_seed(config.train.seed)
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    train = config.train
    report = report._replace(held_out=splits.held_out)
    return Experiment(
        model=model,
        codec=codec,
        train=StoryLoader(
            examples, config.data.batch_size, train.seed, linear_start=train.linear_start * train.accumulate_steps
        ),
        valid=valid,
        loss=AnswerLoss(train),
        evaluate=Evaluation(name, config, codec, valid),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=train.monitor,
        higher_is_better=train.monitor not in (*LOWER_IS_BETTER, "error"),
        extra_files=write_samples(splits.valid) if config.data.train is None else {},
    ), report


def read_splits(task: Task, config: AnswerConfig) -> Tables:
    """Questions to train on and to validate with: of the named files, or synthetic ones; those of a story stay together."""
    data = config.data
    if data.train is not None and data.valid is not None:
        splits = Tables(read_stories(data, data.train), read_stories(data, data.valid, "valid"))
    else:
        splits = tables(data, read, "story", beginnings) or Tables(*task.synthesise(data.samples, seed=0))
    unanswered = [record for part in splits[:2] for record in part or () if record.answer is None]
    if unanswered:
        raise DataError(
            f"{unanswered[0].where} has no answer ({len(unanswered):,} such in all); a question that is trained on or "
            "validated with needs one"
        )
    return splits.prepared(task.prepare)


def beginnings(records: Sequence[StoryQuestion]) -> list[str]:
    """First two sentences of each story: questions about one story, as it goes on, are held out together."""
    return ["\n".join(record.story[:2]) for record in records]


def check_examples(config: AnswerConfig, examples: Sequence[StoryExample], valid: Sequence[StoryExample]) -> None:
    """Raise where nothing can be learned or validated, or where facts are needed and none are known."""
    if not examples or not valid:
        raise DataError(f"too little is there: {len(examples)} questions to train on, {len(valid)} to validate with")
    if config.train.monitor not in FIGURES:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(FIGURES)}, got {config.train.monitor!r}")
    needs = {"train.supporting_facts": bool(config.train.supporting_facts)}
    needs["train.monitor"] = config.train.monitor in ("facts", "best_hop")
    for setting, needed in needs.items():
        part = examples if setting == "train.supporting_facts" else valid
        if needed and not any(example.facts for example in part):
            raise ConfigError(f"{setting} needs supporting facts, and no question has any; leave it out, or name their key")
    if strange := [example.record.where for example in examples if example.label == UNKNOWN]:
        raise DataError(
            f"{strange[0]} has an answer that is none of those of the run that the training begins with ({len(strange):,} "
            "such in all); train without train.init_from, or leave these questions out"
        )


class Evaluation:
    """Metrics of a model while it is trained, whose validation stories are collated once."""

    def __init__(self, name: str, config: AnswerConfig, codec: StoryCodec, valid: Sequence[StoryExample]):
        self.name, self.config, self.codec, self.valid = name, config, codec, valid
        self.cached: CachedExamples | None = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        predictor = build_predictor(tasks.bind(self.name), self.config, self.codec, model, Head())
        self.cached = predictor.cached = self.cached or CachedExamples(self.valid, predictor.loader(self.valid))
        return predictor.score(self.valid).figures()


def write_samples(records: Sequence[StoryQuestion]) -> Mapping[str, bytes]:
    """Files of a few validation stories, and a table of them."""
    few = records[:SAMPLES]
    rows = [
        {
            "story": list(record.story),
            "question": record.question,
            "answer": record.answer,
            "facts": list(record.facts or ()),
        }
        | {"task": record.task}
        for record in records
    ]
    files = {f"samples/story{number}.txt": f"{record.text}\n".encode() for number, record in enumerate(few, 1)}
    return {**files, "samples/stories.jsonl": "".join(dumps(row) + "\n" for row in rows).encode()}


def build(config: AnswerConfig, codec: StoryCodec) -> nn.Module:
    """The model that a config describes, for the words and answers of a codec."""
    return build_network(config, codec.words.size, len(codec.answers), codec.max_sentences, codec.max_words)


def build_network(config: AnswerConfig, vocabulary: int, answers: int, sentences: int, words: int) -> nn.Module:
    """The model that a config describes, for a vocabulary size, a number of answers and the longest story and sentence."""
    module = import_module(f"regard.tasks.answer.models.{config.model.kind}")
    model: nn.Module = module.build(config.model, config.dropout, vocabulary, answers, sentences, words)
    return model


def build_small(config: AnswerConfig) -> nn.Module:
    """The model of a config for a small vocabulary: validates the settings of model and data."""
    if config.model.kind == "memory" and config.model.nonlinear and config.model.hidden_size % 2:
        raise ConfigError(f"model.nonlinear=true needs an even model.hidden_size, got {config.model.hidden_size}")
    return build_network(config, 8, 3, min(config.data.max_sentences, 16), min(config.data.max_words, 16))


def read(data: StoryData, path: str) -> list[StoryQuestion]:
    """The questions of files of stories."""
    return read_stories(data, path)


def load_codec(directory: Traversable) -> StoryCodec:
    """The codec of a run directory."""
    return StoryCodec.load(directory)


def build_predictor(
    task: BoundTask, config: AnswerConfig, codec: StoryCodec, model: nn.Module, head: Head
) -> "StoryAnswerer":
    """The predictor of a model."""
    from regard.tasks.answer.predictor import StoryAnswerer

    return StoryAnswerer(task, config, codec, model)
