"""Codec of anomaly detection: series become numbers as for forecasts, and scores become rows of a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from regard.data.axis import Index
from regard.data.codec import Corpus, Report
from regard.data.lines import Bounds, bounds
from regard.data.modality import WritableFile
from regard.data.series.codec import SeriesCodec
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesColumns, SeriesRecord
from regard.data.series.windows import EncodedSeries
from regard.tasks.anomaly.config import AnomalyData, series_settings
from regard.tasks.anomaly.synthetic import COLUMNS


@dataclass(frozen=True)
class AnomalyCodec:
    """Scales, columns and frequency of the training series."""

    kind: ClassVar[str] = "series"
    reads_files: ClassVar[bool] = True
    feedback: ClassVar[None] = None
    settings: ClassVar[tuple[str, ...]] = ("target", "past", "scaling", "calendar", "window")
    """Settings of data that the codec depends on."""

    series: SeriesCodec
    limits: Bounds = field(default_factory=Bounds)
    """Bounds on what a compressed table may unpack to."""

    @classmethod
    def fit(cls, records: Sequence[SeriesRecord], data: AnomalyData) -> "AnomalyCodec":
        """Scales of training rows, which `records` hold and no others; synthetic series have columns of their own."""
        series = SeriesCodec.fit(records, series_settings(data))
        changes: dict[str, Any] = {"label": data.label} if data.train else dict(COLUMNS)
        columns = replace(series.columns, **changes)
        return cls(replace(series, columns=columns), bounds(data))

    def adapt(self, data: AnomalyData) -> "AnomalyCodec":
        """Codec with these scales and the limits of other settings."""
        return replace(self, limits=bounds(data))

    @property
    def columns(self) -> SeriesColumns:
        """Columns of a table to score, whose label, if any, is not read."""
        return replace(self.series.columns, label="")

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that are scored."""
        return self.series.names.target

    def read(self, text: str, number: int = 1) -> list[SeriesRecord]:
        """Series of a table by its path; "-" is standard input."""
        return read_series(text, self.columns, self.limits)

    def is_known(self, record: Any) -> bool:
        """True: any series of these columns can be scored."""
        return True

    def fits(self, record: Any) -> bool:
        """True: a series is scored window by window, however long it is."""
        return True

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of all records."""
        return list(range(len(records)))

    def encode(self, record: SeriesRecord) -> EncodedSeries:
        """A series as numbers."""
        return self.series.encode(record)

    def encode_all(self, records: Iterable[SeriesRecord], over_long: str | None = None) -> Corpus:
        """Series as numbers, and their count."""
        examples = [self.encode(record) for record in records]
        return Corpus(examples, Report(len(examples), len(examples), 0, 0, 0, 0.0))

    def length(self, example: EncodedSeries) -> int:
        """Steps of a series."""
        return len(example)

    def budget(self, examples: Sequence[EncodedSeries], count: int) -> int:
        """Size of a batch, in windows."""
        return count

    def axis(self, example: EncodedSeries) -> Index:
        """Steps of a series by their number."""
        return Index(len(example))

    def pieces(self, example: EncodedSeries) -> list[str]:
        """Numbers of the steps."""
        return self.axis(example).labels

    def grid(self, example: EncodedSeries) -> None:
        """None: a series is a sequence."""

    def write(self, prediction: str, file: WritableFile) -> None:
        """Write the rows of a prediction."""
        file.write(prediction)

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory; the files written."""
        return self.series.save(directory)

    @classmethod
    def load(cls, directory: Traversable) -> "AnomalyCodec":
        """Read what `save` wrote."""
        return cls(SeriesCodec.load(directory))
