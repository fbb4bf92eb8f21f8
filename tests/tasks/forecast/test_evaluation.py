import numpy as np
import pytest

from regard.data.series.calendar import DAY, Frequency
from regard.data.series.codec import SeriesCodec
from regard.data.series.records import Names, SeriesRecord
from regard.data.series.settings import SeriesData
from regard.data.series.windows import SeriesLoader, Span, Window, Windows
from regard.tasks.forecast.baselines import seasonal_naive
from regard.tasks.forecast.evaluation import (
    RECENT,
    Baselines,
    History,
    ScaledForecast,
    WindowErrors,
    select_later_half,
)
from regard.tasks.forecast.linear import LinearMap


def build_record(values, season=1):
    values = np.asarray(values, float)
    times = DAY * np.arange(len(values))
    none = np.zeros((len(values), 0))
    return SeriesRecord(times, values, Names(("x",) * values.shape[1]), Frequency(DAY), none, none, times[:0])


def encode(values):
    record = build_record(values)
    settings = SeriesData(look_back=4, horizon=2, scaling="none", calendar=False)
    return SeriesCodec.fit([record], settings).encode(record)


def column(*values):
    return np.array(values, float)[:, None]


def test_in_sample_errors_are_those_before_an_origin():
    history = History(encode(column(0, 1, 2, 4, np.nan, 9, 100)), 2)
    assert history.seasonal_error(4).tolist() == [2.5]  # |2 - 0| and |4 - 1|
    assert history.seasonal_error(6).tolist() == pytest.approx([10 / 3])  # and |9 - 4|, across the missing value
    assert history.deviation(4, 2).tolist() == pytest.approx([np.sqrt((4 + 9) / 2)])
    assert history.deviation(3, 1).tolist() == [1]
    assert np.isnan(history.seasonal_error(2)).all()
    assert history.deviation(2, 2).tolist() == [0]


def test_the_deviation_of_a_naive_forecast_is_that_of_recent_steps():
    values = np.random.default_rng(0).normal(size=(RECENT + 80, 1)) * np.where(np.arange(RECENT + 80) < 60, 50, 1)[:, None]
    history, recent = History(encode(values), 3), values[70 : RECENT + 70]
    expected = np.sqrt(((recent[3:] - recent[:-3]) ** 2).mean())
    assert history.deviation(RECENT + 70, 3) == pytest.approx([expected], rel=1e-5)


def test_a_constant_history_scales_nothing():
    assert np.isnan(History(encode(column(*[5] * 8)), 2).seasonal_error(6)).all()


@pytest.fixture
def baselines():
    return Baselines(LinearMap(np.full((2, 4), 0.25), np.ones((2, 1))), season=3, look_back=4, horizon=2)


def test_baselines_read_nothing_from_the_origin_on(baselines):
    values = column(*range(12))
    changed = values.copy()
    changed[8:] = -77
    for name in ("linear", "seasonal-naive", "repeat-last"):
        first, second = (baselines.forecast(name, [Window(encode(each), 8)]) for each in (values, changed))
        np.testing.assert_array_equal(first.point, second.point)
        np.testing.assert_array_equal(first.quantiles, second.quantiles)


def test_baselines_are_what_their_names_say(baselines):
    window = Window(encode(column(1, 5, 2, 1, 6, 2, 0, 0)), 6)
    assert baselines.forecast("repeat-last", [window]).point.ravel().tolist() == [2, 2]
    np.testing.assert_array_equal(
        baselines.forecast("seasonal-naive", [window]).point[0], seasonal_naive(column(1, 5, 2, 1, 6, 2), 2, 3)
    )
    mean_less_last = np.mean([2, 1, 6, 2]) - 2
    assert baselines.forecast("linear", [window]).point.ravel() == pytest.approx([2 + mean_less_last] * 2)


def test_metrics_are_means_over_observed_values_alone(baselines):
    windows = Windows([encode(column(1, 5, 2, 1, 6, 2, 3, np.nan))], [Span(6, 6)])
    [(_, batch)] = SeriesLoader(windows, 4, 2, shuffle=False).in_order()
    truth = baselines.read_truth(batch)
    errors = WindowErrors()
    quantiles = np.linspace(-2, 10, 13)[None, None, None].repeat(2, 1)  # -2, -1, ... 10
    errors.add(ScaledForecast(np.array([[[4.0], [50.0]]]), quantiles), truth, np.array([True]))
    means = errors.means()
    assert means["mse"] == means["mae"] == 1
    assert means["mase"] == pytest.approx(1 / np.mean([0, 1, 0]))
    assert means["smape"] == pytest.approx(200 / 7)
    assert means["coverage80"] == 1
    assert means["crps"] == pytest.approx(2 * means["pinball"])
    assert means["sql"] == pytest.approx(means["crps"] / np.mean([0, 1, 0]))


def test_quantiles_count_in_the_windows_that_are_judged():
    windows = Windows([encode(column(*range(20)))], [Span(8, 11)])
    assert select_later_half(windows).tolist() == [False, False, True, True]
    single = Windows(windows.series, [Span(8, 8)])
    assert select_later_half(single).tolist() == [True]
