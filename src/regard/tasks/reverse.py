"""Reverse: a string of letters in, the reversed string out: a small diagnostic task for mechanisms."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.config import Data, Model, Train
from regard.data.table import Record
from regard.data.text import synthetic
from regard.metrics.text import ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks import TextConfig


@dataclass(frozen=True)
class Config(TextConfig):
    """Every letter is a token."""

    data: Data = field(default_factory=lambda: Data(batch_tokens=1024))
    model: Model = field(default_factory=lambda: Model(hidden_size=128))
    train: Train = field(default_factory=lambda: Train(max_steps=600, learning_rate=3e-3, evaluate_every=100))


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Random strings of letters, for training and validation."""
    return synthetic.split(synthetic.reversal(samples, seed), valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """Exact match of strings."""
    return {"exact": measured(ExactMatch(), outputs, references)}
