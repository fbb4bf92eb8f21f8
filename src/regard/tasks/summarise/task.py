"""Summarise: a document in, its headline, subject or summary out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import Data, Model, Search, Train
from regard.data.records import Record
from regard.data.text import synthetic
from regard.metrics.rouge import Rouge, split_words
from regard.metrics.text import ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks.kinds.text import TextConfig
from regard.tasks.summarise.synthetic import write_reports

ROUGE = {"rouge1": Rouge(1), "rouge2": Rouge(2), "rougeL": Rouge(0)}
LEAD = "lead"
"""Baseline beside the model: the first words of the document, as many as a reference has."""


@dataclass(frozen=True)
class Config(TextConfig):
    """A recurrent network that copies words of the document; rare words are copied alone (data.min_frequency)."""

    FAMILY: ClassVar[str] = "regard.tasks.summarise.experiment"

    data: Data = field(
        default_factory=lambda: Data(
            max_source_length=400,
            max_target_length=100,
            over_long="truncate",
            joint_vocab=True,
            vocab_size=20_000,
            min_frequency=4,
            samples=3000,
        )
    )
    model: Model = field(default_factory=lambda: Model(hidden_size=128, copy=True))
    train: Train = field(default_factory=lambda: Train(max_steps=200, learning_rate=3e-3, evaluate_every=50))
    search: Search = field(default_factory=lambda: Search(beam=4, max_length=100, block_ngrams=3))


def prepare(record: Record) -> Record:
    """Record with each run of white space as one space: a document has lines, and a table has none in a cell."""
    target = None if record.target is None else " ".join(record.target.split())
    return record._replace(source=" ".join(record.source.split()), target=target)


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Synthetic reports with their headlines, for training and validation."""
    return synthetic.split(write_reports(samples, seed), valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """ROUGE of the summaries and of the lead, and exact match; consecutive records of one document are its references."""
    documents, answers, every = list[str](), list[str](), list[list[str]]()
    for source, output, reference in zip(sources, outputs, references, strict=True):
        if not documents or documents[-1] != source:
            documents.append(source)
            answers.append(output)
            every.append([])
        every[-1].append(reference)
    words = round(sum(len(split_words(reference)) for reference in references) / len(references))
    texts = {"": answers, f"{LEAD}.": [lead(text, words) for text in documents]}
    figures: Metrics = {
        f"{of}{name}": measured(metric, text, every) for of, text in texts.items() for name, metric in ROUGE.items()
    }
    return {**figures, "exact": measured(ExactMatch(), texts[""], every)}


def lead(document: str, words: int) -> str:
    """First words of a document."""
    return " ".join(split_words(document[: 40 * (words + 1)])[:words])
