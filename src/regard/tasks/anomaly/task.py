"""Anomaly: a series in, a score and an alarm for each of its steps out."""

from dataclasses import dataclass, field

from regard.config import Train
from regard.data.series.records import SeriesRecord
from regard.tasks.anomaly import synthetic
from regard.tasks.anomaly.config import AnomalyConfig, AnomalyData, AnomalyModel


@dataclass(frozen=True)
class Config(AnomalyConfig):
    """An attention autoencoder of windows."""

    data: AnomalyData = field(default_factory=AnomalyData)
    model: AnomalyModel = field(default_factory=AnomalyModel)
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=400, learning_rate=3e-3, schedule="cosine", warmup_steps=40, evaluate_every=100, monitor="loss"
        )
    )


def prepare(record: SeriesRecord) -> SeriesRecord:
    """The record unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[SeriesRecord], list[SeriesRecord]]:
    """Normal series to train on, and their continuations with planted anomalies."""
    return synthetic.synthesise(samples, seed)
