"""Transcribe: sound in, what is said in it out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.config import AttentionPart, AudioDropout, AudioTextData, AudioToTextModel, SpeechSearch, SpeechTrain
from regard.data.audio.synthetic import syllables
from regard.data.audio.synthetic.syllables import Utterance
from regard.data.table import Record
from regard.metrics.text import ErrorRate, Metrics, SentenceErrorRate
from regard.metrics.text import measure as measured
from regard.tasks.transcribe.experiment import SpeechConfig


@dataclass(frozen=True)
class Config(SpeechConfig):
    """A small Conformer with CTC, and a Transformer decoder."""

    data: AudioTextData = field(default_factory=lambda: AudioTextData(bins=40, samples=3000, batch_seconds=30.0))
    model: AudioToTextModel = field(
        default_factory=lambda: AudioToTextModel(
            hidden_size=64,
            layers=1,
            encoder="conformer",
            encoder_layers=2,
            decoder="transformer",
            attention=AttentionPart("transformer"),
        )
    )
    dropout: AudioDropout = field(default_factory=AudioDropout)
    train: SpeechTrain = field(
        default_factory=lambda: SpeechTrain(
            max_steps=1400,
            learning_rate=3e-3,
            schedule="cosine",
            warmup_steps=50,
            evaluate_every=350,
            ctc_weight=0.5,
            label_smoothing=0.1,
        )
    )
    search: SpeechSearch = field(default_factory=lambda: SpeechSearch(max_length_ratio=0.5, max_length=512))


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Utterance], list[Utterance]]:
    """Synthetic speech to train on, and about one in ten sentences to validate with."""
    sentences = syllables.synthesise(samples, seed)
    held_out = max(1, samples // 10)
    return sentences[held_out:] or sentences, sentences[:held_out]


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: SpeechConfig) -> Metrics:
    """Word, character and sentence error rate."""
    return {
        "wer": measured(ErrorRate("words"), outputs, references),
        "cer": measured(ErrorRate("characters"), outputs, references),
        "ser": measured(SentenceErrorRate(), outputs, references),
    }
