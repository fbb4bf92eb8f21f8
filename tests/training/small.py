"""A small model and its experiment: attention, dropout, tied weights, two layers of state; one step takes a millisecond."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from regard.attention.module import Attention
from regard.attention.types import Encoded
from regard.config import Train
from regard.data.batch import Batch, pad
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.models.types import Step
from regard.training.experiment import Experiment

VOCABULARY = 12


@dataclass(frozen=True)
class Part:
    hidden_size: int = 8
    dropout: float = 0.2


@dataclass(frozen=True)
class Small:
    model: Part = field(default_factory=Part)
    train: Train = field(default_factory=Train)


class Network(nn.Module):
    """Looks each target token up in the source. The output layer is the embedding."""

    def __init__(self, size: int = 8, dropout: float = 0.2):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, size)
        self.cell = nn.GRU(size, size, batch_first=True)
        self.attention = Attention(size, score="additive")
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(size, VOCABULARY)
        self.output.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, source, target, own=0.0, weights=False, statistics=()):
        memory = self.attention.remember(Encoded(self.dropout(self.embedding(source.data)), source.keep))
        state, _ = self.cell(self.dropout(self.embedding(target)))
        attended = self.attention(state, memory, weights=weights, statistics=statistics)
        return Step(self.output(self.scale * self.dropout(attended.context + state)), (), {"attention": attended})


class Plain(nn.Module):
    """No attention, no statistics."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 4)
        self.output = nn.Linear(4, VOCABULARY)

    def forward(self, source, target):
        return Step(self.output(self.embedding(target)), (), {})


class Copies:
    """Batches of sequences to be copied: a pure function of (seed, step)."""

    def __init__(self, seed: int = 0, rows: int = 4):
        self.seed, self.rows = seed, rows

    def batch(self, step: int) -> Batch:
        draw = torch.Generator().manual_seed(1000 * self.seed + step)
        lengths = torch.randint(2, 6, (self.rows,), generator=draw).tolist()
        sequences = [[*torch.randint(4, VOCABULARY, (length,), generator=draw).tolist(), 2] for length in lengths]
        return Batch(pad(sequences), pad(sequences), tuple(range(self.rows)))

    def steps_per_epoch(self) -> int:
        return 6


class Words:
    """A codec that has one file."""

    def __init__(self, words=("a", "b")):
        self.words = words

    def save(self, directory: Path) -> None:
        (directory / "vocabulary.json").write_text(json.dumps(self.words), encoding="utf-8")


def experiment(model: nn.Module | None = None, *, part: Part = Part(), **settings) -> Experiment:
    """An experiment with these settings of Train."""
    usual = {
        "max_steps": 20,
        "evaluate_every": 5,
        "checkpoint_every": 5,
        "log_every": 5,
        "learning_rate": 0.01,
        "device": "cpu",
    }
    config = Small(part, replace(Train(), **{**usual, **settings}))
    if model is None:
        torch.manual_seed(config.train.seed)
        model = Network(part.hidden_size, part.dropout)
    valid = Copies(99, 16).batch(0)

    def evaluate(model):
        loss = teacher_forcing_loss(model, valid)
        return {"loss": (loss.total / loss.tokens).item()}

    return Experiment(
        model=model,
        codec=Words(),
        train=Copies(),
        valid=valid,
        loss=lambda model, batch, progress: teacher_forcing_loss(model, batch),
        evaluate=evaluate,
        config=config,
        task="small",
    )


def fingerprint(directory: Path) -> dict[str, str]:
    """SHA-256 of what a run leaves: the published weights, and every tensor of its last checkpoint."""
    last = max((directory / "checkpoints").glob("[0-9]*"), key=lambda path: int(path.name))
    files = {"model": directory / "model.safetensors", last.name: last / "state.safetensors"}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


TIMES = {"seconds", "tokens_per_second", "waited"}
"""Figures that depend on how long something took, which no two runs share."""


def account(directory: Path) -> dict[str, object]:
    """All that a run says of itself, times aside: the record of the published model, metrics.json and log.jsonl by line."""
    log = [json.loads(line) for line in (directory / "log.jsonl").read_bytes().splitlines()]
    metrics = json.loads((directory / "metrics.json").read_bytes())
    published = json.loads((directory / "manifest.json").read_bytes())["published"]
    return {"published": published, "metrics": timeless(metrics), "log": [timeless(line) for line in log]}


def timeless(table: dict[str, object]) -> dict[str, object]:
    """A table without its times."""
    return {name: value for name, value in table.items() if name not in TIMES}
