import numpy as np
import pytest

from regard.data.series.windows import Span, Windows, training_span
from regard.tasks.forecast.linear import choose_look_back, fill_forward, fit_linear, gather_pairs, measure_linear

from .test_evaluation import encode


def season(steps=120, period=6):
    return np.sin(2 * np.pi * np.arange(steps) / period)[:, None]


def windows(values, look_back, horizon, rows=None):
    return Windows([encode(values)], [training_span(rows or len(values), look_back, horizon)])


def test_a_season_is_continued_by_a_linear_map():
    train = windows(season(), 12, 6, rows=80)
    linear = fit_linear(train, 12, 6)
    assert linear.weight.shape == (6, 12)
    assert linear.deviation.shape == (6, 1)
    later = Windows(train.series, [Span(90, 114)])
    assert (
        measure_linear(linear, later, 12, 6) < 0.05 < measure_linear(linear._replace(weight=0 * linear.weight), later, 12, 6)
    )


def test_a_level_that_a_training_has_not_had_moves_a_forecast_with_it():
    linear = fit_linear(windows(season(), 12, 6), 12, 6)
    near, far = windows(season(), 12, 6), windows(season() + 50, 12, 6)
    assert measure_linear(linear, far, 12, 6) == pytest.approx(measure_linear(linear, near, 12, 6), rel=1e-2)


def test_missing_values_count_as_the_last_observed_one_and_not_in_an_error():
    values = season()
    values[30:33] = np.nan
    pairs = gather_pairs(windows(values, 4, 2), 4, 2, most=10**6)
    first = 31 - 4  # of the window whose horizon begins with step 31
    assert not pairs.observed[first].any()
    np.testing.assert_allclose(pairs.inputs[first + 1, 0, -2:], 0, atol=1e-6)
    assert np.isfinite(pairs.inputs).all()
    filled = fill_forward(np.array([[0.0], [2], [0], [0]]), np.array([[False], [True], [False], [False]]))
    assert filled.ravel().tolist() == [0, 2, 2, 2]


def test_the_look_back_with_the_lowest_error_on_validation_windows_is_chosen():
    values = season(200, 10) + np.random.default_rng(0).normal(0, 0.05, (200, 1))
    sizes = (2, 20)
    train = [windows(values, size, 5, rows=150) for size in sizes]
    valid = [Windows(each.series, [Span(150, 195)]) for each in train]
    chosen, errors = choose_look_back(sizes, train, valid, 5)
    assert chosen == 20
    assert errors[1] < errors[0]
