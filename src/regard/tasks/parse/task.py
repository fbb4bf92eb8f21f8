"""Parse: a question in, its query in SQL or another formal language out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import Data, Dropout, Model, Search, Train
from regard.data.records import Record
from regard.data.text import synthetic
from regard.metrics.text import ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks.kinds.text import TextConfig
from regard.tasks.parse.synthetic import write_questions

SYMBOLS = re.compile(r"(<=|>=|<>|!=|[\"'(),;=<>*?!:\[\]{}|&])")
QUOTED = re.compile(r'"[^"]*"' + r"|'[^']*'")
QUOTED_SPACES = re.compile(r"(?P<mark>[\"']) (?P<text>.*?) (?P=mark)")


@dataclass(frozen=True)
class Config(TextConfig):
    """A recurrent network that copies the constants of a question; rare words are copied alone (data.min_frequency)."""

    FAMILY: ClassVar[str] = "regard.tasks.parse.experiment"

    data: Data = field(default_factory=lambda: Data(min_frequency=2, batch_tokens=2048, samples=3000))
    model: Model = field(default_factory=lambda: Model(hidden_size=128, copy=True))
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.2, residual=0.2))
    train: Train = field(default_factory=lambda: Train(max_steps=250, learning_rate=3e-3, evaluate_every=50))
    search: Search = field(default_factory=lambda: Search(beam=5, max_length=256, max_length_ratio=0.0))


def prepare(record: Record) -> Record:
    """Record whose symbols stand alone, so that a constant is the same word in question and query."""
    target = None if record.target is None else separate(record.target)
    return record._replace(source=separate(record.source), target=target)


def separate(text: str) -> str:
    """Text with spaces around its symbols."""
    return " ".join(SYMBOLS.sub(r" \1 ", text).split())


def finish(text: str) -> str:
    """Query whose constants stand in their quotes without spaces."""
    return QUOTED_SPACES.sub(r"\g<mark>\g<text>\g<mark>", text)


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Synthetic questions about cities and rivers with their queries, for training and validation."""
    return synthetic.split(write_questions(samples, seed), valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """Exact match of whole queries, and of their templates, in which constants count alike."""
    mine, gold = [normalise(text) for text in outputs], [normalise(text) for text in references]
    return {
        "exact": measured(ExactMatch(), mine, gold),
        "template": measured(ExactMatch(), [mask_constants(text) for text in mine], [mask_constants(text) for text in gold]),
    }


def normalise(query: str) -> str:
    """Query in lower case outside of quotes, with single spaces around symbols."""
    parts = re.split(f"({QUOTED.pattern})", finish(separate(query)))
    lowered = (part if number % 2 else part.lower() for number, part in enumerate(parts))
    return " ".join("".join(lowered).split())


def mask_constants(query: str) -> str:
    """Query with a mark for each constant in quotes and each number."""
    return re.sub(r"\b\d+(\.\d+)?\b", "#", QUOTED.sub("#", query))
