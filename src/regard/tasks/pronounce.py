"""Pronounce: a written word in, its phones out (grapheme-to-phoneme)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.config import Data, Dropout, Model, Train
from regard.data.table import Record
from regard.data.text import synthetic, synthetic_languages
from regard.metrics.text import ErrorRate, ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks import TextConfig


@dataclass(frozen=True)
class Config(TextConfig):
    """Letters in; phones, which a table writes with spaces between them, out."""

    data: Data = field(
        default_factory=lambda: Data(
            tokenizer="characters", target_tokenizer="words", max_source_length=64, batch_tokens=1024
        )
    )
    model: Model = field(default_factory=lambda: Model(hidden_size=128))
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.2, residual=0.2))
    train: Train = field(
        default_factory=lambda: Train(max_steps=600, learning_rate=3e-3, label_smoothing=0.1, evaluate_every=100)
    )


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def finish(text: str) -> str:
    """The text unchanged: phones separated by spaces."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Synthetic words of a regular spelling, for training and validation."""
    return synthetic.split(synthetic_languages.spelling(samples, seed), valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """Exact match of words, and phone error rate. WER is 100 - exact."""
    return {
        "exact": measured(ExactMatch(), outputs, references),
        "per": measured(ErrorRate("phonemes"), outputs, references),
    }
