"""Toy modality whose sources are sets of points in the plane and whose targets are tokens: the names of their quadrants.

A record is a text of X,Y pairs between blanks; a set has no order. Everything that a modality and its task need is in this file.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.types import Encoded
from regard.config import AttentionPart, Data, Dropout, Model, Search, Train
from regard.data import table
from regard.data.axis import Index
from regard.data.batch import pad_numbers, pad_present
from regard.data.codec import SETTINGS, Corpus, Report
from regard.data.feedback import TokenFeedback
from regard.data.loader import ModalityLoader
from regard.data.records import Record, input_record
from regard.data.special_tokens import EOS
from regard.data.text import tokenizers
from regard.data.text.axis import TokenAxes
from regard.data.text.codec import until_end
from regard.errors import DataError
from regard.losses.teacher_forcing import TeacherForcing
from regard.metrics.text import ExactMatch
from regard.metrics.text import measure as measure_texts
from regard.models.seq2seq import Seq2Seq, build_decoder
from regard.tasks.kinds.sequence import evaluate
from regard.tasks.kinds.types import TaskConfig
from regard.training.experiment import Experiment

NAMES = {(True, True): "one", (False, True): "two", (False, False): "three", (True, False): "four"}


class Points(NamedTuple):
    """Sets of points, padded to the largest: a source of its own class."""

    data: Tensor
    keep: Tensor

    def to(self, device):
        return Points(self.data.to(device), self.keep.to(device))

    @property
    def lengths(self):
        return None

    def select_rows(self, rows):
        keep = self.keep[list(rows)]
        width = int(keep.sum(1).max())
        return Points(self.data[list(rows), :width], keep[:, :width])

    def round_shape(self):
        padding = -self.keep.shape[1] % 8
        pad = nn.functional.pad
        return Points(pad(self.data, (0, 0, 0, padding)), pad(self.keep, (0, padding), value=False))


class Example(NamedTuple):
    source: Tensor
    target: list[int] | None
    record: Record


@dataclass(frozen=True)
class PointsCodec:
    """Points as they are, and a tokenizer for the names."""

    kind: ClassVar[str] = "points"
    reads_files: ClassVar[bool] = False
    settings: ClassVar[tuple[str, ...]] = ()
    feedback: ClassVar[TokenFeedback] = TokenFeedback()

    target: tokenizers.Tokenizer

    @classmethod
    def fit(cls, records):
        return cls(tokenizers.train("words", [record.target for record in records], 100))

    def read(self, text, number=1):
        return input_record(text, number)

    def adapt(self, data):
        return self

    def is_known(self, record):
        return bool(len(parse(record.source, record.where)))

    def fits(self, record):
        return self.is_known(record)

    def select_fitting(self, records):
        return list(range(len(records)))

    def prepare(self, text):
        return text

    def encode(self, record):
        return Example(parse(record.source, record.where), self.encode_target(record), record)

    def encode_all(self, records, over_long=None):
        examples = [self.encode(record) for record in records]
        return Corpus(examples, Report(len(examples), len(examples), 0, 0, 0, 0.0))

    def length(self, example):
        return len(example.source)

    def budget(self, examples, count):
        return count * max(map(self.length, examples))

    def collate(self, examples):
        padded = pad_numbers([example.source for example in examples])
        return Points(padded.data, padded.keep)

    def loader(self, examples, budget):
        return ModalityLoader(self, examples, budget, shuffle=False)

    def axis(self, example):
        return Index(len(example.source))

    def pieces(self, example):
        return self.axis(example).labels

    def grid(self, example):
        return None

    def example_inputs(self, lengths, generator):
        padded = pad_numbers([torch.randn(length, 2, generator=generator) for length in lengths])
        return Points(padded.data, padded.keep)

    @property
    def dynamic_axes(self):
        return {"data": {0: "sources", 1: "points"}, "keep": {0: "sources", 1: "points"}}

    def encode_target(self, record):
        return None if record.target is None else [*self.target.encode(record.target), EOS]

    def collate_target(self, examples):
        return pad_present([example.target for example in examples])

    def decode(self, output):
        return self.target.decode(until_end(output))

    def write(self, prediction, file):
        file.write(f"{prediction}\n")

    def target_pieces(self, output):
        return self.target.shown([*until_end(output), EOS])

    def target_axis(self, output):
        return self.target_axes.decoded(output)

    @property
    def target_axes(self):
        return TokenAxes(self.target)

    def save(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / SETTINGS
        path.write_text(json.dumps({"reads": self.kind}))
        return [path, *self.target.save(directory, "target")]

    @classmethod
    def load(cls, directory):
        return cls(tokenizers.load(directory, "target"))


def parse(text: str, where: str = "input:1") -> Tensor:
    try:
        return torch.tensor([[float(value) for value in pair.split(",")] for pair in text.split()]).view(-1, 2)
    except (ValueError, RuntimeError) as error:
        raise DataError(f"{where} needs points X,Y between blanks, got {text!r}") from error


class Encoder(nn.Module):
    """Each point by itself: a set has no order."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.network = nn.Sequential(nn.Linear(2, size), nn.ReLU(), nn.Linear(size, size))

    def forward(self, source: Points) -> Encoded:
        data = self.network(source.data).masked_fill(~source.keep[..., None], 0.0)
        return Encoded(data, source.keep, (data.sum(1, keepdim=True) / source.keep.sum(1)[:, None, None],))


@dataclass(frozen=True)
class Config(TaskConfig):
    FAMILY: ClassVar[str] = "regard.tasks.toy_points"

    data: Data = field(default_factory=lambda: Data(samples=128, batch_tokens=128))
    model: Model = field(
        default_factory=lambda: Model(
            hidden_size=32,
            encoder="transformer",
            decoder="transformer",
            heads=2,
            positions="sinusoidal",
            attention=AttentionPart("transformer"),
        )
    )
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.0, residual=0.0))
    train: Train = field(default_factory=lambda: Train(max_steps=60, learning_rate=1e-2, evaluate_every=30))
    search: Search = field(default_factory=lambda: Search(max_length=12, batch_size=4))


def prepare(record):
    return record


def finish(text):
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Points of one quadrant, and its name."""
    generator = torch.Generator().manual_seed(seed)
    records = []
    for number in range(samples):
        count, quadrant = int(torch.randint(1, 8, (), generator=generator)), list(NAMES)[number % 4]
        signs = torch.tensor([1.0 if positive else -1.0 for positive in quadrant])
        points = (torch.rand(count, 2, generator=generator) + 0.2) * signs
        text = " ".join(f"{x:.3f},{y:.3f}" for x, y in points.tolist())
        records.append(Record(text, NAMES[quadrant], f"toy:{number + 1}"))
    return records[samples // 4 :], records[: samples // 4]


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: Any) -> dict[str, Any]:
    return {"exact": measure_texts(ExactMatch(), outputs, references)}


def experiment(name, task, config, out=None):
    training, validation = task.synthesise(config.data.samples, seed=0)
    codec = PointsCodec.fit(training)
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
    return Seq2Seq(Encoder(size), build_decoder(config.model, config.dropout, size, codec.target.size))


def build_small(config) -> Seq2Seq:
    return build(config, PointsCodec(tokenizers.train("words", list(NAMES.values()), 100)))


def read(data, path: str) -> list[Record]:
    return list(table.read(path, data.source, data.target))


def load_codec(directory: Path) -> PointsCodec:
    return PointsCodec.load(directory)


def build_predictor(task, config, codec, model, head):
    from regard.inference.sequence_predictor import SequencePredictor

    return SequencePredictor(task, config, codec, model, head)


def measure_model(predictor, examples):
    return {}
