"""Converse: the turns of a dialogue in, the next turn out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import Data, Model, Search, Train
from regard.data.records import Record
from regard.metrics.text import Bleu, Chrf, ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks.converse.synthetic import write_dialogues
from regard.tasks.converse.turns import join_turns, list_answers, split_turns
from regard.tasks.kinds.text import TextConfig


@dataclass(frozen=True)
class Config(TextConfig):
    """A hierarchical encoder over the turns, and a decoder that copies from them."""

    FAMILY: ClassVar[str] = "regard.tasks.converse.experiment"

    data: Data = field(
        default_factory=lambda: Data(
            joint_vocab=True, over_long="truncate", max_source_length=400, min_frequency=4, batch_tokens=2048, samples=1000
        )
    )
    model: Model = field(default_factory=lambda: Model(encoder="hierarchical", hidden_size=128, copy=True))
    train: Train = field(default_factory=lambda: Train(max_steps=300, learning_rate=3e-3, evaluate_every=100))
    search: Search = field(default_factory=lambda: Search(max_length=60))


def prepare(record: Record) -> Record:
    """Record with the last turns of its history, which fit into what the model reads."""
    target = None if record.target is None else " ".join(record.target.split())
    return record._replace(source=join_turns(split_turns(record.source)), target=target)


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Answers of synthetic dialogues, for training and validation; no dialogue is in both."""
    dialogues = write_dialogues(samples, seed)
    valid = max(1, samples // 10)
    parts = dialogues[valid:], dialogues[:valid]
    first, second = (
        [record for number, turns in enumerate(part, 1) for record in list_answers(turns, f"dialogue:{number}")]
        for part in parts
    )
    sources = {record.source for record in second}
    return [record for record in first if record.source not in sources], second  # some requests begin alike


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """BLEU, chrF and exact match of the answers."""
    metric = Bleu(config.data.bleu_tokenizer if config.data.bleu_tokenizer != "auto" else "13a")
    return {
        "bleu": measured(metric, outputs, references),
        "chrf": measured(Chrf(), outputs, references),
        "exact": measured(ExactMatch(), outputs, references),
    }
