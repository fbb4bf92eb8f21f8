import gzip

import numpy as np
import pytest

from regard.data.series import reading
from regard.data.series.calendar import format_times
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesColumns
from regard.errors import DataError


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="sales.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return name

    return write


DAILY = "date,sales,price\n2024-01-01,1,10\n2024-01-02,2,\n2024-01-03,3,12\n"


def test_every_column_of_numbers_is_a_target_unless_one_is_named(table):
    (record,) = read_series(table(DAILY))
    assert record.names.target == ("sales", "price")
    assert str(record.frequency) == "D"
    (record,) = read_series(table(DAILY), SeriesColumns(target=("sales",), past=("price",)))
    assert record.names == (("sales",), ("price",), (), (), "date")
    assert record.where == "sales.csv:2"


def test_a_missing_value_is_nan_and_never_zero(table):
    (record,) = read_series(table(DAILY))
    np.testing.assert_array_equal(record.target, [[1, 10], [2, np.nan], [3, 12]])
    for cell in ("NA", "nan", "null", "None", "-"):
        (other,) = read_series(table(DAILY.replace(",2,\n", f",2,{cell}\n")))
        np.testing.assert_array_equal(other.target, record.target)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_that_of_the_header(table, delimiter):
    (record,) = read_series(table(DAILY.replace(",", delimiter)))
    assert record.target[2].tolist() == [3, 12]


def test_quoted_names_and_gzip_are_undone(table):
    text = DAILY.replace("price", '"price, net"')
    (record,) = read_series(table(gzip.compress(text.encode()), "sales.csv.gz"))
    assert record.names.target == ("sales", "price, net")


def test_several_series_are_told_apart_by_a_column(table):
    text = "shop,date,sales\na,2024-01-01,1\nb,2024-01-01,5\na,2024-01-02,2\nb,2024-01-02,6\n"
    first, second = read_series(table(text), SeriesColumns(id="shop"))
    assert (first.id, first.target.ravel().tolist()) == ("a", [1, 2])
    assert (second.id, second.target.ravel().tolist()) == ("b", [5, 6])


def test_rows_without_a_target_are_the_future_of_known_covariates(table):
    text = DAILY.replace("date,sales,price", "date,sales,holiday") + "2024-01-04,,1\n2024-01-05,,0\n"
    (record,) = read_series(table(text), SeriesColumns(known=("holiday",)))
    assert len(record) == 3
    assert format_times(record.future) == ["2024-01-04", "2024-01-05"]
    np.testing.assert_array_equal(record.known.ravel(), [10, np.nan, 12, 1, 0])


def test_a_part_of_a_record_keeps_what_is_known_ahead(table):
    (record,) = read_series(table(DAILY), SeriesColumns(known=("price",)))
    part = record.between(0, 2)
    assert (len(part), len(part.future), len(part.known)) == (2, 1, 3)


def test_static_covariates_and_labels(table):
    text = "date,sales,town,odd\n2024-01-01,1,Ulm,0\n2024-01-02,2,Ulm,1\n"
    (record,) = read_series(table(text), SeriesColumns(static=("town",), label="odd"))
    assert record.static == ("Ulm",)
    assert record.label.tolist() == [False, True]
    assert record.names.target == ("sales",)


def test_a_table_without_times_counts_its_rows(table):
    (record,) = read_series(table("sales\n1\n2\n3\n"))
    assert record.times.tolist() == [0, 1, 2]
    assert str(record.frequency) == "1"


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (
            "date,y\n2024-01-02,1\n2024-01-01,2\n",
            {},
            r"sales\.csv:3 is at 2024-01-01 in column 'date', before the row above it \(2024-01-02\); sort",
        ),
        (
            "date,y\n2024-01-01,1\n2024-01-01,2\n",
            {},
            r"sales\.csv:3 has the time of the row above it, 2024-01-01, .*data\.id names the column",
        ),
        (
            "date,y\n2024-01-01,1\n2024-01-02,2\n2024-01-05,2\n",
            {},
            r"sales\.csv:4 is at 2024-01-05 .* the step is D; data\.irregular=insert",
        ),
        ("date,y\n2024-01-01,1\n2024-01-02,lots\n", {}, r"sales\.csv:3 needs a number in column 'y', got 'lots'"),
        ("date,y\n2024-01-01,1\n2024-01-02,inf\n", {}, r"sales\.csv:3 has an infinity in column 'y'"),
        ("date,y\n2024-01-01,1\n", {}, r"sales\.csv:2 is the only time"),
        ("date,y\n", {}, r"sales\.csv has a header and no rows"),
        ("date,y\n2024-01-01,1,2\n", {}, r"sales\.csv:2 has 3 cells, and the header names 2"),
        ("1,2\n3,4\n", {}, r"sales\.csv:1 has only numbers, and names of the columns are needed"),
        ("date,y,y\n2024-01-01,1,2\n", {}, r"sales\.csv:1 has 2 columns called 'y'"),
        ("date,y\n2024-01-01,1\n2024-01-02,1\n", {"target": ("Y",)}, r"sales\.csv has no column 'Y'"),
        (
            "date,y\n2024-01-01,1\n2024-01-02,1\n",
            {"target": ("y",), "known": ("y",)},
            r"column 'y' of sales\.csv is named as a target and as something else",
        ),
        ("date\n2024-01-01\n2024-01-02\n", {}, r"sales\.csv has no column left to forecast"),
        ("id,date,y\na,2024-01-01,1\n,2024-01-02,2\n", {"id": "id"}, r"sales\.csv:3 has no id in column 'id'"),
        (
            "date,y,s\n2024-01-01,1,a\n2024-01-02,2,b\n",
            {"static": ("s",)},
            r"sales\.csv:3 has 'b' in the static column 's', and the series began with 'a'",
        ),
        ("date,y,l\n2024-01-01,1,2\n2024-01-02,2,0\n", {"label": "l"}, r"sales\.csv:2 needs 0 or 1 in column 'l', got 2"),
        (
            "n,y\n1,1\n2,2\n",
            {"time": "n", "frequency": "D"},
            r"data\.frequency is D, and the times of sales\.csv are numbers",
        ),
        ('date,y\n2024-01-01,"1\n', {}, r"sales\.csv:2 is not CSV: unexpected end of data"),
    ],
)
def test_what_is_wrong_is_named_with_row_and_column(table, text, columns, message):
    with pytest.raises(DataError, match=message):
        read_series(table(text), SeriesColumns(**columns))


def test_too_many_columns_are_refused_at_the_header(table, monkeypatch):
    monkeypatch.setattr(reading, "MAX_COLUMNS", 3)
    with pytest.raises(DataError, match=r"sales\.csv has 4 columns, and at most 3 are read"):
        read_series(table("a,b,c,d\n1,2,3,4\n"))
    monkeypatch.setattr(reading, "MAX_COLUMNS", 100_000)
    monkeypatch.setattr(reading, "MAX_TARGETS", 3)
    with pytest.raises(DataError, match=r"has 4 columns to forecast, and at most 3 are forecast together"):
        read_series(table("a,b,c,d\n1,2,3,4\n"))


def test_parquet_is_read_as_csv_is(table):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"date": np.array(["2024-01-01", "2024-01-02"], "datetime64[s]"), "sales": [1.0, None], "town": ["Ulm", "Ulm"]}
    parquet.write_table(pyarrow.table(columns), "sales.parquet")
    (record,) = read_series("sales.parquet", SeriesColumns(static=("town",)))
    np.testing.assert_array_equal(record.target.ravel(), [1, np.nan])
    assert (record.static, record.where) == (("Ulm",), "sales.parquet:1")
    assert format_times(record.times) == ["2024-01-01", "2024-01-02"]


class Column:
    def __init__(self, values):
        self.values = np.asarray(values)
        self.name, self.dtype = None, self.values.dtype

    def to_numpy(self):
        return self.values


class Frame:
    """The part of a pandas DataFrame that is used: pandas itself is not a dependency."""

    def __init__(self, index, **columns):
        self.index, self.columns, self._columns = index, list(columns), columns

    def __getitem__(self, name):
        return Column(self._columns[name])

    def __len__(self):
        return len(self.index.values)


def test_a_data_frame_is_read_with_the_times_of_its_index():
    days = Column(np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]"))
    (record,) = read_series(Frame(days, sales=[1.0, np.nan]))
    np.testing.assert_array_equal(record.target.ravel(), [1, np.nan])
    assert format_times(record.times) == ["2024-01-01", "2024-01-02"]
    assert record.where == "row 0 of the DataFrame"


def test_a_data_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"date": pandas.date_range("2024-01-01", periods=3), "y": [1, 2, None], "town": "Ulm"})
    (record,) = read_series(frame, SeriesColumns(static=("town",)))
    np.testing.assert_array_equal(record.target.ravel(), [1, 2, np.nan])
    assert record.static == ("Ulm",)


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="series are read from a path or from a pandas DataFrame, got int"):
        read_series(3)


def test_rows_that_arrive_one_by_one_are_read_as_those_of_a_file():
    rows = [["2024-01-01 00:00", "1"], ["2024-01-01 01:00", "NA"]]
    [record] = reading.read_rows(["t", "a"], rows, ["live.csv:2", "live.csv:3"], SeriesColumns(), "live.csv")
    assert record.target[:, 0].tolist() == [1, pytest.approx(float("nan"), nan_ok=True)]
    assert record.where == "live.csv:2"
    with pytest.raises(DataError, match=r"live.csv:3 needs a number in column 'a', got 'x'"):
        reading.read_rows(
            ["t", "a"], [rows[0], ["2024-01-01 01:00", "x"]], ["live.csv:2", "live.csv:3"], SeriesColumns(), "t"
        )
