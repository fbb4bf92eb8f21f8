"""Forecasts of the series of a table, in original units: as CSV, as JSON, or as a pandas DataFrame."""

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.series.calendar import Times, format_times
from regard.data.series.records import SeriesRecord
from regard.errors import MissingExtraError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeriesForecast:
    """Forecast of one series: a point and quantiles for each step and target, in original units."""

    record: SeriesRecord
    """The series up to the first step that is forecast."""
    times: Times
    point: Array
    """(steps, targets)."""
    quantiles: Array
    """(steps, targets, levels), ascending."""
    levels: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self.record.names.target

    def to_dict(self) -> dict[str, Any]:
        """Forecast as JSON has it."""
        targets = {
            name: {
                "point": self.point[:, column].tolist(),
                "quantiles": {
                    f"{level:g}": self.quantiles[:, column, place].tolist() for place, level in enumerate(self.levels)
                },
            }
            for column, name in enumerate(self.names)
        }
        return {"series": self.record.id, "time": format_times(self.times), "targets": targets}


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of all series of a table.

    forecasts = predictor.forecast("sales.csv")
    forecasts.to_frame()                           a DataFrame with a row for each series and step
    forecasts.series[0].quantiles                  NumPy arrays
    """

    series: tuple[SeriesForecast, ...]
    time: str
    """Column of times; "step" where rows are numbered."""
    id: str
    """Column that tells series apart; empty: there is one."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the table of forecasts: sales, then sales_0.1 and sales_0.9 for its quantiles."""
        first = self.series[0]
        names = [[name, *(f"{name}_{level:g}" for level in first.levels)] for name in first.names]
        return [*([self.id] if self.id else []), self.time, *(name for group in names for name in group)]

    def rows(self) -> list[list[Any]]:
        """Rows of that table: texts, then numbers."""
        rows = []
        for forecast in self.series:
            values = np.concatenate((forecast.point[..., None], forecast.quantiles), -1)
            for time, row in zip(format_times(forecast.times), values.reshape(len(values), -1).tolist(), strict=True):
                rows.append([*([forecast.record.id] if self.id else []), time, *row])
        return rows

    def to_csv(self) -> str:
        """The table as CSV, six significant digits."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in self.rows())
        return file.getvalue()

    def to_dicts(self) -> list[dict[str, Any]]:
        """The forecasts as JSON has them."""
        return [forecast.to_dict() for forecast in self.series]

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, with datetimes where the table has dates."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("a DataFrame needs the pandas package: pip install pandas, or use to_csv()") from error

        frame = pandas.DataFrame(self.rows(), columns=self.columns)
        if self.series[0].times.dtype.kind != "f":
            frame[self.time] = pandas.to_datetime(frame[self.time])
        else:
            frame[self.time] = frame[self.time].astype(float)
        return frame
