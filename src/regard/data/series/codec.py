"""Codec of series: columns, scales of each series, covariates, and vocabularies of static ones, fitted on training rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.axis import Series
from regard.data.codec import SETTINGS, Corpus, Report
from regard.data.series.calendar import Frequency, calendar_features, feature_names
from regard.data.series.records import Names, SeriesColumns, SeriesRecord, Values
from regard.data.series.settings import SeriesData, build_columns
from regard.data.series.windows import EncodedSeries, SeriesLoader, Window, future_span
from regard.errors import DataError

FORMAT = 1
KIND = "series"
UNKNOWN = 0
"""Number of a static covariate that was not among the training series."""
SMALLEST_SCALE = 1e-8
"""Deviations below this share of the mean's size count as none: the series is constant, and its scale is 1."""


class Extent(NamedTuple):
    """Times of a training table: the last one that was trained on or validated with, and the last one that is tested on."""

    read_until: float
    test_until: float | None = None
    """None: no end."""


class Fitted(NamedTuple):
    """Mean and scale of each column."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def measure(cls, values: Values) -> "Fitted":
        """Mean and deviation of the observed values of each column; 0 and 1 without any, and 1 where all are equal."""
        present = ~np.isnan(values)
        counts = np.maximum(present.sum(0), 1)
        mean = np.where(present, values, 0).sum(0) / counts
        deviation = np.sqrt((np.where(present, values - mean, 0) ** 2).sum(0) / counts)
        constant = deviation <= SMALLEST_SCALE * np.maximum(np.abs(mean), 1e-30)
        return cls(tuple(mean.tolist()), tuple(np.where(constant, 1.0, deviation).tolist()))

    @classmethod
    def identity(cls, columns: int) -> "Fitted":
        """Values as they are."""
        return cls((0.0,) * columns, (1.0,) * columns)

    def apply(self, values: Values) -> NDArray[np.float32]:
        """Scaled values; 0, the mean, where one is missing."""
        scaled = (values - np.array(self.mean)) / np.array(self.scale)
        return np.nan_to_num(scaled, nan=0.0).astype(np.float32)


@dataclass(frozen=True)
class SeriesCodec:
    """Codec of series: encodes the series of a table as numbers, and decodes forecasts into values."""

    kind: ClassVar[str] = KIND
    reads_files: ClassVar[bool] = True
    feedback: ClassVar[None] = None
    settings: ClassVar[tuple[str, ...]] = (
        "target", "past", "known", "static", "look_back", "look_backs", "horizon", "season", "scaling", "calendar"
    )  # fmt: skip
    """Settings of data that the codec depends on."""

    columns: SeriesColumns
    names: Names
    frequency: Frequency
    look_back: int
    horizon: int
    season: int
    """Steps of the season of the seasonal-naive forecast and of scaled metrics."""
    calendar: bool
    scaling: str
    scales: Mapping[str, Fitted]
    """Scale of the targets of each series, by its id."""
    past: Fitted
    known: Fitted
    vocabularies: tuple[tuple[str, ...], ...] = ()
    """Values of each static covariate, from number 1 on."""
    extents: Mapping[str, Extent] = field(default_factory=dict)
    """Times of each series that a training has read, by its id."""

    @classmethod
    def fit(
        cls, records: Sequence[SeriesRecord], data: SeriesData, extents: Mapping[str, Extent] = MappingProxyType({})
    ) -> "SeriesCodec":
        """Scales and vocabularies of training rows, which `records` hold and no others."""
        if data.look_back < 1 or data.horizon < 1:
            raise DataError(
                f"a window needs data.look_back and data.horizon of 1 or more, got {data.look_back} and {data.horizon}"
            )
        names, frequency = records[0].names, records[0].frequency
        for record in records:
            if record.frequency != frequency:
                raise DataError(
                    f"{record.where} begins a series with a step of {record.frequency}, and "
                    f"the first one has {frequency}; name one with "
                    "data.frequency, and data.irregular=mean resamples"
                )
        scales = {record.id: _scale(record, data.scaling) for record in records}
        statics = zip(*(record.static for record in records), strict=True) if names.static else ()
        columns = build_columns(data)
        settled = SeriesColumns(**{**asdict(columns), "target": names.target, "time": names.time})
        return cls(
            columns=settled,
            names=names,
            frequency=frequency,
            look_back=data.look_back,
            horizon=data.horizon,
            season=data.season or choose_season(frequency, max(map(len, records))),
            calendar=data.calendar,
            scaling=data.scaling,
            scales=scales,
            past=Fitted.measure(np.concatenate([record.past for record in records])),
            known=Fitted.measure(np.concatenate([record.known for record in records])),
            vocabularies=tuple(tuple(sorted(set(values))) for values in statics),
            extents=dict(extents),
        )

    def adapt(self, data: SeriesData) -> "SeriesCodec":
        """The codec itself: no setting of it is a limit."""
        return self

    @property
    def known_names(self) -> tuple[str, ...]:
        """Names of what is known ahead: covariates of the table, whether each was missing, then calendar features."""
        missing = tuple(f"{name} missing" for name in self.names.known)
        return (*self.names.known, *missing, *(feature_names(self.frequency) if self.calendar else ()))

    @property
    def past_names(self) -> tuple[str, ...]:
        """Names of the covariates known up to the present, then whether each was missing."""
        return (*self.names.past, *(f"{name} missing" for name in self.names.past))

    def scale(self, record: SeriesRecord) -> Fitted:
        """Scale of a series: as fitted, or that of its own values if it was not among the training series."""
        return self.scales.get(record.id) or _scale(record, self.scaling)

    def encode(self, record: SeriesRecord) -> EncodedSeries:
        """A series as numbers."""
        scale = self.scale(record)
        observed = ~np.isnan(record.target)
        known = [self.known.apply(record.known), np.isnan(record.known).astype(np.float32)]
        if self.calendar:
            known.append(calendar_features(self._times(record), self.frequency))
        return EncodedSeries(
            record,
            scale.apply(record.target),
            observed,
            np.concatenate((self.past.apply(record.past), np.isnan(record.past).astype(np.float32)), 1),
            np.concatenate([self._extend(part, record) for part in known], 1),
            self._numbers(record.static),
            np.array(scale.mean, np.float32),
            np.array(scale.scale, np.float32),
        )

    def decode(self, scaled: NDArray[np.floating], record: SeriesRecord) -> Values:
        """Values in original units of scaled ones, whose second dimension is the targets."""
        scale = self.scale(record)
        shape = (1, len(scale.mean), *(1,) * (scaled.ndim - 2))
        values: Values = np.asarray(scaled, np.float64) * np.reshape(scale.scale, shape) + np.reshape(scale.mean, shape)
        return values

    def future_times(self, record: SeriesRecord) -> NDArray[Any]:
        """Times of the horizon after the end of a series."""
        return record.frequency.steps_after(record.times[-1].item(), self.horizon)

    def encode_all(self, records: Iterable[SeriesRecord], over_long: str | None = None) -> Corpus:
        """The window after the end of each series."""
        records = list(records)
        windows = [Window(self.encode(record), future_span(len(record)).first) for record in records]
        return Corpus(windows, Report(len(records), len(records), 0, 0, 0, 0.0))

    def is_known(self, record: Any) -> bool:
        """True: every series has a past to forecast from."""
        return True

    def fits(self, record: Any) -> bool:
        """True: of a long series the look-back is read."""
        return True

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of all records."""
        return list(range(len(records)))

    def budget(self, examples: Sequence[Window], count: int) -> int:
        """Size of a batch, in windows."""
        return count

    def loader(self, examples: Sequence[Window], budget: int) -> SeriesLoader:
        """Batches of an evaluation, of `budget` windows."""
        return SeriesLoader(examples, self.look_back, self.horizon, batch_size=budget, shuffle=False)

    def axis(self, example: Window) -> Series:
        """Axis of the look-back, in original units; NaN before the beginning of a series."""
        record, origin = example.record, example.origin
        first = origin - self.look_back
        values = np.full((self.look_back, record.target.shape[1]), np.nan, np.float32)
        values[max(0, -first) :] = record.target[max(0, first) : origin]
        return Series(self._times_between(record, first, origin), values, self.names.target, dates=self._dates(record))

    def target_axis(self, example: Window, values: Values) -> Series:
        """Axis of a horizon with these forecasts, in original units."""
        times = self._times_between(example.record, example.origin, example.origin + self.horizon)
        return Series(times, values.astype(np.float32), self.names.target, split=0, dates=self._dates(example.record))

    def pieces(self, example: Window) -> list[str]:
        """Times of the look-back."""
        return self.axis(example).labels

    def grid(self, example: Window) -> None:
        """None: a series is a sequence."""

    def _dates(self, record: SeriesRecord) -> bool:
        return record.times.dtype.kind != "f"

    def _times_between(self, record: SeriesRecord, first: int, last: int) -> NDArray[Any]:
        """Times of steps, also of those before the beginning of a series and after its end."""
        times = self._times(record)
        if first < 0:
            before = times[0] - (times[1] - times[0]) * np.arange(-first, 0, -1)
            return np.concatenate((before[: max(0, last - first)], times[: max(0, last)]))[: last - first]
        return times[first:last]

    def check_future(self, record: SeriesRecord) -> None:
        """Raise unless covariates that are known ahead are given for the horizon."""
        if self.names.known and len(record.future) < self.horizon:
            raise DataError(
                f"the series that begins at {record.where} has {', '.join(self.names.known)} for {len(record.future):,} "
                f"steps after its last "
                f"target, and the horizon is {self.horizon:,}; add rows with these columns and an empty target"
            )

    def _times(self, record: SeriesRecord) -> NDArray[Any]:
        """Times of a series and of a horizon after it."""
        return np.concatenate((record.times, self.future_times(record))).astype(record.times.dtype)

    def _extend(self, values: NDArray[np.float32], record: SeriesRecord) -> NDArray[np.float32]:
        """Rows up to the end of the horizon: 0 where nothing is known."""
        rows = len(record) + self.horizon
        extended = np.zeros((rows, values.shape[1]), np.float32)
        extended[: min(rows, len(values))] = values[:rows]
        return extended

    def _numbers(self, static: Sequence[str]) -> NDArray[np.int64]:
        pairs = zip(static, self.vocabularies, strict=True)
        return np.array(
            [vocabulary.index(value) + 1 if value in vocabulary else UNKNOWN for value, vocabulary in pairs], np.int64
        )

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / SETTINGS
        settings = {"format": FORMAT, "reads": KIND, **asdict(self)}
        path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return [path]

    @classmethod
    def load(cls, directory: Traversable) -> "SeriesCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            return cls(**_parse(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error


def choose_season(frequency: Frequency, history: int) -> int:
    """Season of a frequency: its shortest natural cycle that the history holds twice; 1, so repeat-last, where none is."""
    return next((season for season in frequency.seasons if 2 * season <= history), 1)


def format_place(record: SeriesRecord) -> str:
    """A series in a message: its place, and its id where there is one."""
    return f"{record.where} (series {record.id!r})" if record.id else record.where


def _scale(record: SeriesRecord, scaling: str) -> Fitted:
    if scaling == "none":
        return Fitted.identity(record.target.shape[1])
    return Fitted.measure(record.target)


def _parse(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, dict) or settings.pop("format", None) != FORMAT or settings.pop("reads", None) != KIND:
        raise ValueError("it is of another format")
    columns: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings["columns"].items()
    }
    fitted = {key: _fitted(value) for key, value in settings["scales"].items()}
    targets = {len(scale.mean) for scale in fitted.values()}
    target, past, known, static, time = settings["names"]
    names = Names(tuple(target), tuple(past), tuple(known), tuple(static), str(time))
    if targets != {len(names.target)} or min(settings["look_back"], settings["horizon"], settings["season"]) < 1:
        raise ValueError("its sizes do not go together")
    return settings | {
        "columns": SeriesColumns(**columns),
        "names": names,
        "frequency": Frequency(**settings["frequency"]),
        "scales": fitted,
        "past": _fitted(settings["past"]),
        "known": _fitted(settings["known"]),
        "vocabularies": tuple(map(tuple, settings["vocabularies"])),
        "extents": {key: Extent(*extent) for key, extent in settings["extents"].items()},
    }


def _fitted(pair: Any) -> Fitted:
    mean, scale = (tuple(float(value) for value in values) for values in pair)
    if len(mean) != len(scale) or not np.isfinite([*mean, *scale]).all() or not all(value > 0 for value in scale):
        raise ValueError("a scale needs finite numbers above 0")
    return Fitted(mean, scale)
