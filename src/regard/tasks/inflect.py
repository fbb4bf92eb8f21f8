"""Inflect: a lemma and its features in, the inflected form out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.config import Data, Dropout, Model, Train
from regard.data.table import Record
from regard.data.text import synthetic, synthetic_languages
from regard.metrics.text import ErrorRate, ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks import TextConfig

BETWEEN = "|"
"""A source is written lemma|features, features between semicolons: Katze|N;DAT;PL."""
OTHER = r"\W"
SPACE = "␣"
"""A space inside a form, while spaces separate its letters."""


@dataclass(frozen=True)
class Config(TextConfig):
    """Config of inflection, whose tokens are letters and features."""

    data: Data = field(default_factory=lambda: Data(max_source_length=96, max_target_length=96, batch_tokens=1024))
    model: Model = field(default_factory=lambda: Model(hidden_size=128))
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.2, residual=0.2))
    train: Train = field(
        default_factory=lambda: Train(max_steps=600, learning_rate=3e-3, label_smoothing=0.1, evaluate_every=100)
    )


def prepare(record: Record) -> Record:
    """Separate letters and features by spaces; a feature begins with _, so that it is no letter."""
    lemma, _, features = record.source.partition(BETWEEN)
    tags = [f"_{re.sub(OTHER, '_', feature)}" for feature in features.split(";") if feature]
    target = None if record.target is None else spaced(record.target)
    return record._replace(source=" ".join((spaced(lemma), *tags)), target=target)


def finish(text: str) -> str:
    """Join the letters, and restore spaces."""
    return text.replace(" ", "").replace(SPACE, " ")


def spaced(word: str) -> str:
    """A word with a space between its letters."""
    return " ".join(word.replace(" ", SPACE))


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Synthetic lemmas of a mostly regular inflection, for training and validation."""
    return synthetic.split(synthetic_languages.inflection(samples, seed), valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """Exact match of forms, and character error rate."""
    return {
        "exact": measured(ExactMatch(), outputs, references),
        "cer": measured(ErrorRate("characters"), outputs, references),
    }
