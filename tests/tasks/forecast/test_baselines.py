import numpy as np
import pytest

from regard.data.series.calendar import Frequency
from regard.data.series.codec import choose_season
from regard.tasks.forecast.baselines import naive_quantiles, repeat_last, seasonal_naive


def column(*values):
    return np.array(values, np.float64)[:, None]


def test_the_last_observed_value_is_repeated():
    assert repeat_last(column(1, 2, np.nan), 3).ravel().tolist() == [2, 2, 2]
    assert np.isnan(repeat_last(column(np.nan), 2)).all()


def test_the_last_season_is_repeated():
    assert seasonal_naive(column(9, 1, 2, 3), 5, 3).ravel().tolist() == [1, 2, 3, 1, 2]
    assert seasonal_naive(column(1, 2), 3, 7).ravel().tolist() == [2, 2, 2]


def test_a_missing_value_of_the_last_season_is_that_of_an_earlier_one():
    assert seasonal_naive(column(4, 5, 6, 1, np.nan, 3), 3, 3).ravel().tolist() == [1, 5, 3]
    assert seasonal_naive(column(5, 6, 1, np.nan, 3), 3, 3).ravel().tolist() == [1, 5, 3]
    assert seasonal_naive(column(1, np.nan, 3), 3, 3).ravel().tolist() == [1, 3, 3]


def test_a_season_is_the_shortest_natural_cycle():
    assert choose_season(Frequency.parse("h"), 1000) == 24
    assert choose_season(Frequency.parse("h"), 40) == 1
    assert choose_season(Frequency(1, "numbers"), 1000) == 1


def test_quantiles_of_a_naive_forecast_widen_by_a_season():
    deviation = np.array([2.5])
    quantiles = naive_quantiles(column(10, 20, 10), deviation, 2, [-1.0, 0.0, 1.0])
    spread = quantiles[:, 0, 2] - quantiles[:, 0, 1]
    assert spread == pytest.approx(deviation[0] * np.sqrt([1, 1, 2]))
    assert quantiles[:, 0, 1].tolist() == [10, 20, 10]
