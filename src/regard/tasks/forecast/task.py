"""Forecast: a table of series in, their values after its end out, with intervals."""

from dataclasses import dataclass, field

from regard.config import Dropout, Train
from regard.data.series.records import SeriesRecord
from regard.data.series.settings import SeriesData
from regard.data.series.synthetic import generate_sales
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.experiment import ForecastConfig


@dataclass(frozen=True)
class Config(ForecastConfig):
    """Patches of each series with a Transformer encoder, a reversible normalisation, and quantiles."""

    data: SeriesData = field(default_factory=lambda: SeriesData(horizon=28))
    model: ForecastModel = field(default_factory=ForecastModel)
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.1, residual=0.1))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=600, learning_rate=1e-3, schedule="cosine", warmup_steps=50, evaluate_every=100, checkpoint_every=100
        )
    )


def prepare(record: SeriesRecord) -> SeriesRecord:
    """The series unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[SeriesRecord], list[SeriesRecord]]:
    """Daily sales of shops, which are split by time; none has a table to validate on."""
    return generate_sales(samples, seed), []
