import json
from dataclasses import replace

import numpy as np
import pytest

from regard.data.series.codec import Fitted, SeriesCodec
from regard.data.series.reading import read_series
from regard.data.series.records import SeriesColumns
from regard.data.series.settings import SeriesData, build_columns, parse_split
from regard.errors import ConfigError, DataError

TABLE = """shop,date,sales,visits,holiday,town
a,2024-01-01,1,5,0,Ulm
a,2024-01-02,3,7,1,Ulm
a,2024-01-03,,,0,Ulm
a,2024-01-04,5,9,0,Ulm
a,2024-01-05,,,1,Ulm
a,2024-01-06,,,0,Ulm
b,2024-01-01,100,5,0,Bern
b,2024-01-02,100,5,0,Bern
b,2024-01-03,100,5,0,Bern
"""
SHOPS = SeriesData(
    time="date", target="sales", past="visits", known="holiday", static="town", id="shop", look_back=3, horizon=2
)


@pytest.fixture
def records(tmp_path):
    (tmp_path / "shops.csv").write_text(TABLE)
    return read_series(tmp_path / "shops.csv", build_columns(SHOPS))


@pytest.fixture
def codec(records):
    return SeriesCodec.fit(records, SHOPS)


def test_settings_name_columns_with_commas_between_them():
    assert build_columns(replace(SHOPS, target="sales, price"), label="odd") == SeriesColumns(
        "date", ("sales", "price"), ("visits",), ("holiday",), ("town",), "shop", "odd"
    )


@pytest.mark.parametrize(("text", "split"), [("0.7,0.1,0.2", (0.7, 0.1, 0.2)), ("8640, 2880, 2880", (8640, 2880, 2880))])
def test_a_split_is_three_numbers(text, split):
    assert parse_split(text) == split


@pytest.mark.parametrize("text", ["", "0.7,0.3", "a,b,c"])
def test_another_split_is_refused(text):
    with pytest.raises(ConfigError, match=r"data\.split is three numbers with commas between them"):
        parse_split(text)


def test_each_series_has_a_scale_of_its_own_and_a_constant_one_has_a_scale_of_one(codec):
    assert codec.scales["a"].mean == (3,)
    assert codec.scales["a"].scale == pytest.approx((np.sqrt(8 / 3),))
    assert codec.scales["b"] == ((100,), (1,))


def test_a_missing_value_is_masked(codec, records):
    encoded = codec.encode(records[0])
    assert encoded.observed.ravel().tolist() == [True, True, False, True]
    assert encoded.data[2, 0] == 0
    assert codec.past_names == ("visits", "visits missing")
    assert encoded.past[:, 1].tolist() == [0, 0, 1, 0]


def test_what_is_known_ahead_reaches_over_the_horizon(codec, records):
    encoded = codec.encode(records[0])
    assert codec.known_names == ("holiday", "holiday missing", "day of week", "day of month", "day of year")
    assert encoded.known.shape == (4 + 2, 5)
    raw = encoded.known[:, 0] * codec.known.scale[0] + codec.known.mean[0]
    np.testing.assert_allclose(raw, [0, 1, 0, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(encoded.known[:, 3], np.arange(6) / 30 - 0.5, atol=1e-6)


def test_static_covariates_are_numbered_and_unknown_ones_are_zero(codec, records):
    assert [codec.encode(record).static.tolist() for record in records] == [[2], [1]]
    assert codec.encode(replace(records[0], static=("Rom",))).static.tolist() == [0]


def test_decoding_undoes_the_scale(codec, records):
    encoded = codec.encode(records[0])
    np.testing.assert_allclose(codec.decode(encoded.data, records[0])[[0, 1, 3], 0], [1, 3, 5], rtol=1e-6)
    quantiles = np.repeat(encoded.data[..., None], 2, -1)
    np.testing.assert_allclose(codec.decode(quantiles, records[0])[1], [[3, 3]], rtol=1e-6)


def test_a_series_that_was_not_fitted_has_the_scale_of_its_own_values(codec, records):
    other = replace(records[1], id="c", target=np.array([[1.0], [2], [3]]))
    assert codec.scale(other).mean == (2,)


def test_the_scale_is_that_of_the_rows_it_is_fitted_on(records):
    fitted = SeriesCodec.fit([records[0].between(0, 2)], SHOPS)
    assert fitted.scales["a"].mean == (2,)
    assert fitted.encode(records[0]).data[3, 0] == pytest.approx(3)


def test_no_scaling_leaves_values_as_they_are(records):
    codec = SeriesCodec.fit(records, replace(SHOPS, scaling="none", calendar=False))
    assert codec.encode(records[1]).data.ravel().tolist() == [100, 100, 100]
    assert codec.known_names == ("holiday", "holiday missing")


def test_missing_known_covariates_of_the_future_are_an_error(codec, records):
    codec.check_future(records[0])
    with pytest.raises(DataError, match=r"shops\.csv:8 has holiday for 0 steps after its last target, and the horizon is 2"):
        codec.check_future(records[1])


def test_series_of_different_steps_are_refused(records, tmp_path):
    (tmp_path / "weekly.csv").write_text(
        TABLE.replace("b,2024-01-02", "b,2024-01-08").replace("b,2024-01-03", "b,2024-01-15")
    )
    mixed = read_series(tmp_path / "weekly.csv", build_columns(SHOPS))
    with pytest.raises(DataError, match=r"weekly\.csv:8 begins a series with a step of W, and the first one has D"):
        SeriesCodec.fit(mixed, SHOPS)


@pytest.mark.parametrize("name", ["look_back", "horizon"])
def test_a_window_of_no_steps_is_refused(records, name):
    with pytest.raises(DataError, match=r"data\.look_back and data\.horizon of 1 or more"):
        SeriesCodec.fit(records, replace(SHOPS, **{name: 0}))


def test_a_saved_codec_encodes_equally(codec, records, tmp_path):
    (path,) = codec.save(tmp_path / "run")
    again = SeriesCodec.load(tmp_path / "run")
    assert again == codec
    assert path.name == "codec.json"
    for record in records:
        for one, other in zip(vars(codec.encode(record)).values(), vars(again.encode(record)).values(), strict=True):
            assert one is other or np.array_equal(one, other)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 9},
        {"reads": "text"},
        {"scales": {"a": [[0], [0]]}},
        {"scales": {"a": [[0, 1], [1, 1]]}},
        {"horizon": 0},
        {"names": 3},
        {"past": [["x"], [1]]},
        {"other": 1},
    ],
)
def test_a_damaged_codec_is_refused(codec, tmp_path, change):
    (path,) = codec.save(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=r"codec\.json needs to be the settings of a codec of series, format 1"):
        SeriesCodec.load(tmp_path)


def test_columns_without_values_have_a_scale_of_one():
    assert Fitted.measure(np.array([[np.nan], [np.nan]])) == ((0,), (1,))
