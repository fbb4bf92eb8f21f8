"""Settings of anomaly detection."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config import Train
from regard.config.section import Section
from regard.data.series.records import SeriesColumns
from regard.data.series.settings import SeriesData, split_names
from regard.tasks.kinds.types import TaskConfig


@dataclass(frozen=True)
class AnomalyData(Section):
    """Tables of series, their columns, and the windows that are cut from them."""

    columns: ClassVar[tuple[str, str, str]] = ("time", "target", "label")

    train: str | None = None
    """Table of normal behaviour to train on: CSV or Parquet with a header; None: synthetic series."""
    valid: str | None = None
    """Table with labels (data.label) on which the detectors are compared while training; None: none is compared."""
    test: str | None = None
    """Table with labels to evaluate the trained model on."""
    time: str = ""
    """Column of times; empty: the first column of dates, and numbers of rows where there is none."""
    target: str = ""
    """Columns to score, with commas between them; empty: every column of numbers that is nothing else."""
    past: str = ""
    """Columns that are read and not scored, such as commands: with commas between them."""
    label: str = ""
    """Column of known anomalies, 0 or 1: only metrics read it, never the training nor the threshold."""
    id: str = ""
    """Column that tells the series of a table apart; empty: there is one."""
    frequency: str = ""
    """Frequency of the steps, such as 15min, h, D, W, M; empty: inferred from the times."""
    time_format: str = ""
    """Format of the times, as strptime has it (%d/%m/%Y); empty: ISO 8601."""
    irregular: Literal["refuse", "insert", "mean", "last"] = "refuse"
    """Steps that are not one frequency apart: an error, insertion of missing steps, or resampling by mean or last value."""
    held_out: float = 0.2
    """Share of the rows of each training series, the last ones, on which the loss is watched and the threshold is set."""
    window: int = 64
    """Steps of a window: what a detector reads at a time."""
    stride: int = 8
    """Steps between the ends of two windows that are scored: 1 scores each step as it arrives."""
    constant: Literal["refuse", "score"] = "refuse"
    """Columns that have one value in all training rows: an error, or scored as they are, by their distance from it."""
    scaling: Literal["standard", "none"] = "standard"
    """Scaling of each series by the mean and the deviation of its training rows."""
    calendar: bool = False
    """Calendar features of the times, such as the hour of the day, are read too."""
    batch_size: int = 64
    """Batch size in windows."""
    samples: int = 4
    """Number of synthetic series that are generated where no table is named."""
    max_bytes: int | None = None
    """Bytes that a compressed table may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Rows of a compressed table; None: 500,000, or one for each of its bytes where that is more."""

    @property
    def budget(self) -> int:
        """Capacity of a batch, in windows."""
        return self.batch_size


def build_columns(data: AnomalyData) -> SeriesColumns:
    """Columns that the settings name."""
    return SeriesColumns(
        time=data.time,
        target=split_names(data.target),
        past=split_names(data.past),
        id=data.id,
        label=data.label,
        frequency=data.frequency,
        time_format=data.time_format,
        irregular=data.irregular,
    )


def series_settings(data: AnomalyData) -> SeriesData:
    """Settings of the codec of series: a window is a look-back without a horizon."""
    shared = {name: getattr(data, name) for name in ("time", "target", "past", "id", "frequency", "time_format")}
    return SeriesData(
        **shared,
        irregular=data.irregular,
        look_back=data.window,
        horizon=1,
        scaling=data.scaling,
        calendar=data.calendar,
    )


@dataclass(frozen=True)
class AnomalyModel(Section):
    """A detector: what it expects of a window, how errors become the score of a step, and when a score is an alarm."""

    detector: Literal["reconstruction", "memory", "forecast", "association"] = "reconstruction"
    """The detector: an attention autoencoder, attention to windows of the training rows, a forecast of each patch from those
    before it, or the Anomaly Transformer, which compares prior and series association (and ranks low in TSB-AD)."""
    hidden_size: int = 32
    """Size of the vectors of the network."""
    feedforward_size: int = 64
    """Inner size of the feed-forward networks."""
    layers: int = 2
    """Layers of self-attention over the patches of a window."""
    heads: int = 4
    """Heads of the attentions."""
    self_attention: str = "scaled_dot"
    """Self-attention, by the name of a score, a normaliser or a scope, or several joined by +: scaled_dot+local."""
    patch: int = 4
    """Steps of a patch: one vector of the network."""
    latents: int = 4
    """Vectors that a window is squeezed into (model.detector=reconstruction)."""
    latent_size: int = 4
    """Numbers of each of them."""
    memory: int = 2000
    """Windows of the training rows that are stored, at most (model.detector=memory)."""
    association_weight: float = 3.0
    """Weight λ of the association discrepancy (model.detector=association)."""
    temperature: float = 50.0
    """Factor on the discrepancy before the softmax of the score (model.detector=association)."""
    reduce: Literal["mean", "max"] = "mean"
    """The error of a step is the mean over the targets, or that of the worst one."""
    aggregate: Literal["mean", "window", "last"] = "mean"
    """The score of a step: the mean of its error over all windows that cover it, the mean of the errors of those windows as
    wholes, or its error in the first window that covers it."""
    smooth: int = 1
    """Moving average over so many scores, the step itself and those before it; 1: none."""
    likelihood: int = 0
    """Score by the tail probability of an error among as many errors before it, which adapts to drift; 0: the error."""
    refractory: int = 0
    """Steps after a score in which only a higher one counts; 0: every step counts by itself."""
    threshold: Literal["pot", "quantile"] = "pot"
    """Threshold of alarms, from scores of the held-out rows alone: extreme value theory (peaks over threshold), or their
    quantile at 1 - model.alarm_rate."""
    alarm_rate: float = 0.001
    """Share of normal steps that may raise an alarm."""
    clusters: int = 20
    """Clusters of the k-means detector in the table."""
    variance: float = 0.9
    """Share of the variance that the components of the PCA detector in the table explain."""
    baseline_window: int = 0
    """Steps of a window of the k-means and PCA detectors; 0: data.window."""


@dataclass(frozen=True)
class AnomalyDropout(Section):
    """Dropout rates while training."""

    residual: float = 0.0
    """Dropout on the output of each sublayer, before the residual connection."""
    attention: float = 0.0
    """Dropout on attention weights."""


@dataclass(frozen=True)
class AnomalyConfig(TaskConfig):
    """Settings of anomaly detection."""

    FAMILY: ClassVar[str] = "regard.tasks.anomaly.experiment"
    WRITES: ClassVar[bool] = False

    data: AnomalyData = field(default_factory=AnomalyData)
    model: AnomalyModel = field(default_factory=AnomalyModel)
    dropout: AnomalyDropout = field(default_factory=AnomalyDropout)  # type: ignore[assignment]
    train: Train = field(default_factory=Train)
