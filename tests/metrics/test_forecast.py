from statistics import NormalDist

import numpy as np
import pytest

from regard.metrics import forecast as metrics

LEVELS = [level / 100 for level in range(1, 100)]


def windows(values):
    return np.array(values, np.float64)[:, None, None]


def test_errors_worked_by_hand():
    truth, forecast = windows([1, 2, -2]), windows([2, 0, -2])
    everything = np.ones_like(truth, bool)
    assert metrics.mean_error(metrics.squared_errors(forecast, truth), everything) == pytest.approx(5 / 3)
    assert metrics.mean_error(metrics.absolute_errors(forecast, truth), everything) == 1
    smape = metrics.symmetric_percentage_errors(forecast, truth)
    np.testing.assert_allclose(smape.ravel(), [200 / 3, 200, 0])
    assert metrics.symmetric_percentage_errors(windows([0]), windows([0])).item() == 0


def test_what_is_not_observed_does_not_count():
    truth, forecast = windows([1, np.nan]), windows([3, 5])
    observed = ~np.isnan(truth)
    assert metrics.mean_error(metrics.squared_errors(forecast, truth), observed) == 4
    assert np.isnan(metrics.mean_error(metrics.squared_errors(forecast, truth), np.zeros_like(observed)))


def test_pinball_losses_worked_by_hand():
    losses = metrics.pinball_losses(np.array([[[[1.0, 3.0]]]]), np.array([[[2.0]]]), [0.1, 0.9])
    np.testing.assert_allclose(losses.ravel(), [0.1, 0.1])
    with pytest.raises(ValueError, match="a quantile for each of 3 levels, got 2"):
        metrics.pinball_losses(np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 1)), [0.1, 0.5, 0.9])


@pytest.mark.parametrize(("mean", "deviation", "truth"), [(0, 1, 0), (0, 1, 2.5), (3, 2, -1), (-1, 0.5, -1.2)])
def test_three_ways_to_the_crps_agree(mean, deviation, truth):
    closed = metrics.normal_crps(windows([mean]), windows([deviation]), windows([truth])).item()
    normal = NormalDist(mean, deviation)
    levels = [(level + 0.5) / 2000 for level in range(2000)]
    quantiles = np.array([normal.inv_cdf(level) for level in levels])[None, None, None]
    by_quantiles = metrics.quantile_crps(quantiles, windows([truth]), levels).item()
    by_samples = metrics.sample_crps(quantiles, windows([truth])).item()
    assert by_quantiles == pytest.approx(closed, abs=1e-3)
    assert by_samples == pytest.approx(closed, abs=2e-3)


def test_the_crps_of_a_point_is_its_absolute_error():
    point = np.full((1, 1, 1, len(LEVELS)), 3.0)
    assert metrics.quantile_crps(point, windows([5]), LEVELS).item() == pytest.approx(2)
    assert metrics.sample_crps(point, windows([5])).item() == pytest.approx(2)


def test_the_seasonal_error_is_that_of_the_seasonal_naive_forecast():
    history = np.array([[1, 5], [2, 5], [4, 5], [np.nan, 5], [5, 5]], np.float64)
    np.testing.assert_array_equal(metrics.seasonal_error(history, 1), [1.5, np.nan])
    np.testing.assert_array_equal(metrics.seasonal_error(history, 2), [2, np.nan])
    np.testing.assert_array_equal(metrics.seasonal_error(history, 7), [np.nan, np.nan])
    with pytest.raises(ValueError, match="a season has at least one step, got 0"):
        metrics.seasonal_error(history, 0)


def test_mase_of_the_seasonal_naive_forecast_on_its_own_history_is_one():
    history = np.random.default_rng(0).normal(size=(200, 3))
    errors = np.abs(history[24:] - history[:-24])[None]
    scaled = metrics.scale_errors(errors, metrics.seasonal_error(history, 24)[None])
    np.testing.assert_allclose(scaled.mean((0, 1)), 1)


def test_a_constant_series_has_no_scaled_error():
    scaled = metrics.scale_errors(np.ones((1, 2, 2)), np.array([[2, np.nan]]))
    assert metrics.mean_error(scaled, np.ones((1, 2, 2), bool)) == 0.5


def test_coverage_is_the_share_inside():
    truth = windows([1, 2, 3, 9])
    observed = windows([True, True, True, False]).astype(bool)
    assert metrics.coverage(truth * 0, truth * 0 + 2, truth, observed) == pytest.approx(2 / 3)


def test_the_interval_of_overlapping_windows_is_wider_with_blocks():
    generator = np.random.default_rng(1)
    errors = np.convolve(generator.exponential(size=1095), np.ones(96) / 96, "valid")[:, None, None]
    observed = np.ones_like(errors, bool)
    alone, blocks = (metrics.measure_windows(errors, observed, "mse", block) for block in (1, 96))
    assert alone.value == blocks.value == pytest.approx(errors.mean())
    assert blocks.low < alone.low < alone.value < alone.high < blocks.high
    assert blocks == metrics.measure_windows(errors, observed, "mse", 96)
    assert blocks.signature == "mse|blocks:96"
