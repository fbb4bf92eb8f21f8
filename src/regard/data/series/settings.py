"""Settings of tables of series."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config.section import Section
from regard.data.series.records import SeriesColumns
from regard.errors import ConfigError


@dataclass(frozen=True)
class SeriesData(Section):
    """Tables of series, their columns, and the windows that are cut from them."""

    columns: ClassVar[tuple[str, str]] = ("time", "target")

    train: str | None = None
    """Table to train on: CSV or Parquet with a header; None: synthetic series."""
    valid: str | None = None
    """Table to validate on; None: the validation rows of data.split."""
    test: str | None = None
    """Table to evaluate the trained model on; None: the test rows of data.split."""
    time: str = ""
    """Column of times; empty: the first column of dates, and numbers of rows where there is none."""
    target: str = ""
    """Columns to forecast, with commas between them; empty: every column of numbers that is nothing else."""
    past: str = ""
    """Covariates that are known up to the present: columns, with commas between them."""
    known: str = ""
    """Covariates that are known for the horizon too, such as prices or holidays: columns, with commas between them."""
    static: str = ""
    """Covariates that do not change along a series: columns, with commas between them."""
    id: str = ""
    """Column that tells the series of a table apart; empty: there is one."""
    frequency: str = ""
    """Frequency of the steps, such as 15min, h, D, W, M; empty: inferred from the times."""
    time_format: str = ""
    """Format of the times, as strptime has it (%d/%m/%Y); empty: ISO 8601."""
    irregular: Literal["refuse", "insert", "mean", "last"] = "refuse"
    """Steps that are not one frequency apart: an error, insertion of missing steps, or resampling by mean or last value."""
    split: str = "0.7,0.1,0.2"
    """Training, validation and test rows in the order of time: three shares, or three numbers of rows."""
    look_back: int = 0
    """Look-back: the steps that a model reads before the first one that it forecasts; 0: the one of data.look_backs whose
    linear forecast has the lowest error on the validation rows."""
    look_backs: str = ""
    """Look-backs to choose from, with commas between them; empty: one, two, four and eight times the horizon or the season,
    as far as the training rows go."""
    horizon: int = 24
    """Horizon: the steps that are forecast."""
    season: int = 0
    """Season in steps, of the seasonal-naive forecast and of the scaled metrics; 0: the shortest natural cycle of the
    frequency, such as 24 hours or 7 days."""
    scaling: Literal["standard", "none"] = "standard"
    """Scaling of each series by the mean and the deviation of its training rows."""
    calendar: bool = True
    """Calendar features of the times, such as the hour of the day, are covariates that are known ahead."""
    batch_size: int = 32
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


def build_columns(data: SeriesData, label: str = "") -> SeriesColumns:
    """Columns that the settings name."""
    return SeriesColumns(
        time=data.time,
        target=split_names(data.target),
        past=split_names(data.past),
        known=split_names(data.known),
        static=split_names(data.static),
        id=data.id,
        label=label,
        frequency=data.frequency,
        time_format=data.time_format,
        irregular=data.irregular,
    )


def split_names(text: str) -> tuple[str, ...]:
    """Names of columns with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_split(text: str) -> tuple[float, float, float]:
    """Three numbers of rows, or three shares of them."""
    try:
        train, valid, test = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            f"data.split is three numbers with commas between them, of training, validation and test rows, got {text!r}; "
            "0.7,0.1,0.2 are shares, and 8640,2880,2880 are rows"
        ) from None
    return train, valid, test
