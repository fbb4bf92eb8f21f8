import sys
from types import SimpleNamespace

import numpy as np
import pytest

from regard.errors import MissingExtraError
from regard.tasks.forecast.forecasts import Forecasts, SeriesForecast

from .test_evaluation import build_record


@pytest.fixture
def forecasts():
    record = build_record(np.arange(5.0)[:, None])
    part = SeriesForecast(
        record, record.frequency.steps_after(record.times[-1].item(), 2), np.array([[5.0], [6]]),
        np.array([[[4.0, 7]], [[4, 8]]]), (0.1, 0.9),
    )  # fmt: skip
    return Forecasts((part,), "date", "")


def test_forecasts_are_a_table_with_a_column_for_each_quantile(forecasts):
    assert forecasts.to_csv() == "date,x,x_0.1,x_0.9\n1970-01-06,5,4,7\n1970-01-07,6,4,8\n"


def test_forecasts_are_json_by_target_and_level(forecasts):
    [table] = forecasts.to_dicts()
    assert table["time"] == ["1970-01-06", "1970-01-07"]
    assert table["targets"]["x"] == {"point": [5, 6], "quantiles": {"0.1": [4, 4], "0.9": [7, 8]}}


def test_a_frame_has_the_rows_of_the_table_and_datetimes(forecasts, monkeypatch):
    class DataFrame(dict):
        def __init__(self, rows, columns):
            super().__init__(zip(columns, zip(*rows, strict=True), strict=True))

    stub = SimpleNamespace(DataFrame=DataFrame, to_datetime=lambda cells: [np.datetime64(cell) for cell in cells])
    monkeypatch.setitem(sys.modules, "pandas", stub)
    frame = forecasts.to_frame()
    assert frame["x_0.9"] == (7, 8)
    assert frame["date"] == [np.datetime64("1970-01-06"), np.datetime64("1970-01-07")]


def test_a_frame_needs_pandas(forecasts, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"a DataFrame needs the pandas package: pip install pandas, or use to_csv"):
        forecasts.to_frame()
