"""Translate: a sentence in, its translation out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.config import Data, Model, Train
from regard.data.table import Record
from regard.data.text import synthetic
from regard.metrics.text import Bleu, Chrf, ErrorRate, ExactMatch, Metrics, score_by_length
from regard.metrics.text import measure as measured
from regard.tasks import TextConfig


@dataclass(frozen=True)
class Config(TextConfig):
    """Word tokens (a Chinese character is one), and a small recurrent network with additive attention."""

    data: Data = field(default_factory=lambda: Data(batch_tokens=1024))
    model: Model = field(default_factory=lambda: Model(hidden_size=128))
    train: Train = field(
        default_factory=lambda: Train(max_steps=500, learning_rate=3e-3, label_smoothing=0.1, evaluate_every=100)
    )


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Record], list[Record]]:
    """Synthetic sentence pairs of a small English-Chinese grammar, for training and validation."""
    return synthetic.split(synthetic.grammar(samples, seed), valid=max(1, samples // 10))


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig) -> Metrics:
    """BLEU, chrF, exact match, word error rate (except for Chinese, which marks no words), and BLEU by source length."""
    chinese = any("\u4e00" <= letter <= "\u9fff" for reference in references for letter in reference)
    metric = Bleu(config.data.bleu_tokenizer if config.data.bleu_tokenizer != "auto" else "zh" if chinese else "13a")
    words: Metrics = {} if chinese else {"wer": measured(ErrorRate("words"), outputs, references)}
    return {
        "bleu": measured(metric, outputs, references),
        "chrf": measured(Chrf(), outputs, references),
        "exact": measured(ExactMatch(), outputs, references),
        **words,
        "bleu_by_length": score_by_length(metric, outputs, references, [len(source.split()) for source in sources]),
    }
