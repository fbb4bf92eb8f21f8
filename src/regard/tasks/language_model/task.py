"""Language model: texts in; a probability of every text, and the continuation of a beginning, out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.config import Search, Train
from regard.data.table import Record
from regard.data.text import synthetic
from regard.metrics.text import Metrics
from regard.tasks.language_model.config import LanguageData, LanguageNetwork
from regard.tasks.language_model.experiment import LanguageConfig


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Word tokens, and a small recurrent network."""

    data: LanguageData = field(default_factory=lambda: LanguageData(batch_tokens=1024))
    model: LanguageNetwork = field(default_factory=lambda: LanguageNetwork(decoder="recurrent", hidden_size=128))
    train: Train = field(default_factory=lambda: Train(max_steps=500, learning_rate=3e-3, evaluate_every=100))
    search: Search = field(default_factory=lambda: Search(max_length=100, max_length_ratio=0.0))


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """English sentences of a small grammar, for training and validation."""
    sentences = [record._replace(target=record.source) for record in synthetic.grammar(samples, seed)]
    return synthetic.split(sentences, valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: LanguageConfig) -> Metrics:
    """No metrics of outputs: a continuation has no reference."""
    return {}
