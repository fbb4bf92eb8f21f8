import numpy as np
import pytest

from regard.data.series import grid
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesColumns
from regard.errors import DataError


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "sales.csv").write_text(text)
        return "sales.csv"

    return write


GAP = "date,y\n2024-01-01,1\n2024-01-02,2\n2024-01-05,5\n"


def test_missing_steps_are_inserted_as_missing_values(table):
    (record,) = read_series(table(GAP), SeriesColumns(irregular="insert"))
    np.testing.assert_array_equal(record.target.ravel(), [1, 2, np.nan, np.nan, 5])


@pytest.mark.parametrize(("policy", "first"), [("mean", 2), ("last", 3)])
def test_irregular_steps_are_resampled(table, policy, first):
    text = "time,y\n2024-01-01 00:00,1\n2024-01-01 00:40,3\n2024-01-01 01:10,5\n2024-01-01 03:05,7\n"
    (record,) = read_series(table(text), SeriesColumns(irregular=policy, frequency="h"))
    np.testing.assert_array_equal(record.target.ravel(), [first, 5, np.nan, 7])


def test_a_step_that_would_invent_most_of_a_series_is_refused(table):
    text = "time,y\n2024-01-01 00:00,1\n2024-01-01 00:01,3\n2024-03-01 00:00,5\n"
    with pytest.raises(DataError, match=r"needs 86,401; name a longer step with data\.frequency"):
        read_series(table(text), SeriesColumns(irregular="insert"))


def test_a_time_between_two_steps_cannot_be_inserted(table):
    text = "time,y\n2024-01-01 00:00,1\n2024-01-01 01:00,3\n2024-01-01 02:30,5\n"
    with pytest.raises(DataError, match=r"sales\.csv:4 is at 2024-01-01 02:30:00 .* between two steps of h; resample"):
        read_series(table(text), SeriesColumns(irregular="insert"))


def test_labels_of_resampled_steps_are_those_of_any_of_their_rows(table):
    text = "time,y,odd\n2024-01-01 00:00,1,0\n2024-01-01 00:40,3,1\n2024-01-01 01:10,5,0\n"
    (record,) = read_series(table(text), SeriesColumns(irregular="mean", frequency="h", label="odd"))
    assert record.label.tolist() == [True, False]


def test_a_grid_may_have_a_few_steps_for_each_row(table, monkeypatch):
    monkeypatch.setattr(grid, "MAX_FILLED", 1)
    with pytest.raises(DataError, match=r"needs 5; name a longer step"):
        read_series(table(GAP), SeriesColumns(irregular="insert"))
