"""Toy modality with numeric targets: the next values of a series, each of which is fed back.

A record is a text of numbers between blanks. Everything that a modality and its task need is in this file.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.attention.types import Encoded
from regard.config import AttentionPart, Data, Dropout, Model, Search, Train
from regard.data import table
from regard.data.axis import Series
from regard.data.batch import Padded, pad_numbers
from regard.data.codec import SETTINGS, Corpus, Report
from regard.data.feedback import NumberFeedback
from regard.data.loader import ModalityLoader
from regard.data.records import Record, input_record
from regard.errors import DataError
from regard.losses.teacher_forcing import TeacherForcing
from regard.metrics.forecast import absolute_errors, measure_windows
from regard.models.seq2seq import Seq2Seq, build_decoder
from regard.tasks.kinds.sequence import evaluate
from regard.tasks.kinds.types import TaskConfig
from regard.training.experiment import Experiment

HORIZON = 6


class Example(NamedTuple):
    source: Tensor
    target: Tensor | None
    record: Record


@dataclass(frozen=True)
class SeriesCodec:
    """Values, standardised by the mean and the deviation of the training data."""

    kind: ClassVar[str] = "series"
    reads_files: ClassVar[bool] = False
    settings: ClassVar[tuple[str, ...]] = ()
    feedback: ClassVar[NumberFeedback] = NumberFeedback(1, observed=True)

    mean: float
    deviation: float

    @classmethod
    def fit(cls, records):
        values = torch.cat([parse(record.source) for record in records])
        return cls(float(values.mean()), float(values.std()))

    def read(self, text, number=1):
        return input_record(text, number)

    def adapt(self, data):
        return self

    def is_known(self, record):
        return bool(parse(record.source).numel())

    def fits(self, record):
        return self.is_known(record)

    def select_fitting(self, records):
        return list(range(len(records)))

    def encode(self, record):
        return Example(self.standardise(parse(record.source, record.where)), self.encode_target(record), record)

    def encode_all(self, records, over_long=None):
        examples = [self.encode(record) for record in records]
        return Corpus(examples, Report(len(examples), len(examples), 0, 0, 0, 0.0))

    def standardise(self, values):
        return ((values - self.mean) / self.deviation)[:, None]

    def length(self, example):
        return len(example.source)

    def budget(self, examples, count):
        return count * max(map(self.length, examples))

    def collate(self, examples):
        return pad_numbers([example.source for example in examples])

    def loader(self, examples, budget):
        return ModalityLoader(self, examples, budget, shuffle=False)

    def axis(self, example):
        values = example.source.numpy() * self.deviation + self.mean
        return Series(np.arange(len(values), dtype=float), values, ("value",), dates=False)

    def pieces(self, example):
        return self.axis(example).labels

    def grid(self, example):
        return None

    def example_inputs(self, lengths, generator):
        return pad_numbers([torch.randn(length, 1, generator=generator) for length in lengths])

    @property
    def dynamic_axes(self):
        return {"data": {0: "sources", 1: "steps"}, "keep": {0: "sources", 1: "steps"}}

    def encode_target(self, record):
        return None if record.target is None else self.standardise(parse(record.target, record.where))

    def collate_target(self, examples):
        targets = [example.target for example in examples if example.target is not None]
        return pad_numbers(targets) if targets else None

    def decode(self, output):
        return [round(value * self.deviation + self.mean, 4) for value in output[:, 0].tolist()]

    def write(self, prediction, file):
        file.write(f"{' '.join(f'{value:g}' for value in prediction)}\n")

    def target_pieces(self, output):
        return [f"+{step}" for step in range(1, len(output) + 1)]

    def target_axis(self, output):
        values = np.array(self.decode(output))[:, None]
        return Series(np.arange(1.0, len(values) + 1), values, ("value",), split=0, dates=False)

    def save(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / SETTINGS
        path.write_text(json.dumps({"mean": self.mean, "deviation": self.deviation}))
        return [path]

    @classmethod
    def load(cls, directory):
        return cls(**json.loads((directory / SETTINGS).read_text()))


def parse(text: str, where: str = "input:1") -> Tensor:
    try:
        return torch.tensor([float(word) for word in text.split()])
    except ValueError as error:
        raise DataError(f"{where} needs numbers between blanks, got {text!r}") from error


class Encoder(nn.Module):
    """GRU over the values of a series."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.cells = nn.GRU(1, size, batch_first=True)

    def forward(self, source: Padded) -> Encoded:
        data, _ = self.cells(source.data)
        last = data[torch.arange(len(data), device=data.device), source.keep.sum(1) - 1]
        return Encoded(data.masked_fill(~source.keep[..., None], 0.0), source.keep, (last[:, None],))


@dataclass(frozen=True)
class Config(TaskConfig):
    FAMILY: ClassVar[str] = "regard.tasks.toy_series"
    WRITES: ClassVar[bool] = False

    data: Data = field(default_factory=lambda: Data(samples=64, batch_tokens=256))
    model: Model = field(
        default_factory=lambda: Model(hidden_size=16, encoder="transformer", attention=AttentionPart("additive"))
    )
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.0, residual=0.0))
    train: Train = field(default_factory=lambda: Train(max_steps=40, learning_rate=1e-2, evaluate_every=20))
    search: Search = field(default_factory=lambda: Search(max_length=HORIZON, max_length_ratio=0.0, batch_size=4))


def prepare(record):
    return record


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Sines of different lengths and phases, and how they go on."""
    generator = torch.Generator().manual_seed(seed)
    records = []
    for number in range(samples):
        length, phase = int(torch.randint(8, 20, (), generator=generator)), float(torch.rand((), generator=generator))
        values = [f"{3 + math.sin(0.7 * (step + 9 * phase)):.4f}" for step in range(length + HORIZON)]
        records.append(Record(" ".join(values[:length]), " ".join(values[length:]), f"toy:{number + 1}"))
    return records[samples // 4 :], records[: samples // 4]


def measure(outputs: Sequence[Any], references: Sequence[Any], sources: Sequence[str], config: Any) -> dict[str, Any]:
    forecast, truth = (np.array(values)[..., None] for values in (outputs, references))
    return {"mae": measure_windows(absolute_errors(forecast, truth), np.ones(truth.shape, bool), "mean absolute error")}


def experiment(name, task, config, out=None):
    training, validation = task.synthesise(config.data.samples, seed=0)
    codec = SeriesCodec.fit(training)
    examples, report = codec.encode_all(training)
    valid = codec.encode_all(validation).examples
    torch.manual_seed(config.train.seed)
    model = build(config, codec)
    return Experiment(
        model=model,
        codec=codec,
        train=ModalityLoader(codec, examples, config.data.batch_tokens, config.train.seed),
        valid=valid,
        loss=TeacherForcing(config.train, model),
        evaluate=partial(evaluate, loader=codec.loader(valid, config.data.batch_tokens)),
        config=config,
        task=name,
        data_report=report.notes(),
    ), report


def build(config, codec) -> Seq2Seq:
    size = config.model.hidden_size
    return Seq2Seq(Encoder(size), build_decoder(config.model, config.dropout, size, 1, feedback=codec.feedback))


def build_small(config) -> Seq2Seq:
    return build(config, SeriesCodec(0.0, 1.0))


def read(data, path: str) -> list[Record]:
    return list(table.read(path, data.source, data.target))


def load_codec(directory: Path) -> SeriesCodec:
    return SeriesCodec.load(directory)


def build_predictor(task, config, codec, model, head):
    from regard.inference.rollout_predictor import RolloutPredictor

    return RolloutPredictor(task, config, codec, model)
