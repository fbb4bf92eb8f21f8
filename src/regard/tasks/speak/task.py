"""Speak: a text in, sound out, with the times of its words."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from regard.config import AttentionPart, Train
from regard.data.audio.synthetic import syllables
from regard.data.audio.synthetic.syllables import Utterance
from regard.data.records import Record
from regard.tasks.speak.config import SpeakData, SpeakDropout, SpeakModel
from regard.tasks.speak.experiment import SpeakConfig

PITCH, LOUDNESS, NOISE = 130.0, 0.6, 1e-4
"""One voice: a synthesiser learns to speak like one."""


@dataclass(frozen=True)
class Config(SpeakConfig):
    """A small Tacotron 2 with forward attention, guided along the diagonal."""

    data: SpeakData = field(default_factory=lambda: SpeakData(bins=40, batch_seconds=30.0))
    model: SpeakModel = field(
        default_factory=lambda: SpeakModel(
            attention=AttentionPart("forward"),
            hidden_size=128,
            reduction=3,
            layers=2,
            prenet_size=64,
            postnet_layers=3,
            postnet_size=64,
        )
    )
    dropout: SpeakDropout = field(default_factory=SpeakDropout)
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=450,
            learning_rate=2e-3,
            schedule="cosine",
            warmup_steps=50,
            guided_attention=1.0,
            evaluate_every=150,
            checkpoint_every=150,
        )
    )


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[Sequence[Utterance], Sequence[Utterance]]:
    """Sentences of words that are spelt as they sound, in one voice: to train on, and a tenth as many to validate with."""
    few = max(4, samples // 10)
    spoken = [
        replace(utterance, pitch=PITCH, loudness=LOUDNESS, noise=NOISE)
        for utterance in syllables.synthesise(samples + few, seed)
    ]
    return spoken[:samples], spoken[samples:]
