import numpy as np
import pytest
import torch

from regard.tasks.forecast.calibration import LEVELS, Calibration, add_shift, interpolate_levels, measure_shift


def repeat(point):
    return np.repeat(np.asarray(point, float)[:, None, None, None], len(LEVELS), -1)


def test_the_shift_of_a_level_is_an_order_statistic_of_the_errors():
    truth = np.arange(1.0, 20)[:, None, None]  # 19 windows with errors 1 to 19
    shift = measure_shift(repeat(np.zeros(19)), truth, np.ones_like(truth, bool))[:, 0, 0]
    assert shift[LEVELS.index(0.5)] == 10  # the 10th of 19
    assert shift[LEVELS.index(0.9)] == 18
    assert shift[LEVELS.index(0.1)] == 2
    assert shift[LEVELS.index(0.975)] == 19  # no more windows are there


def test_values_that_were_not_observed_calibrate_nothing():
    truth = np.array([1.0, 2, 3, 1e9])[:, None, None]
    observed = np.array([True, True, True, False])[:, None, None]
    shift = measure_shift(repeat(np.zeros(4)), truth, observed)
    assert shift.max() == 3
    assert not measure_shift(repeat(np.zeros(4)), truth, np.zeros_like(observed)).any()


@pytest.mark.parametrize("wrong", [0.2, 1.0, 5.0])
def test_intervals_that_are_too_narrow_or_too_wide_cover_their_share_after_a_calibration(wrong):
    """Errors are normal with deviation 1, and the model's quantiles have the deviation `wrong`."""
    generator = np.random.default_rng(0)
    standard = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.float64)).numpy()
    quantiles = np.broadcast_to(wrong * standard, (400, 2, 1, len(LEVELS)))
    truth = generator.normal(size=(800, 2, 1))
    shift = measure_shift(quantiles, truth[:400], np.ones((400, 2, 1), bool))
    calibrated = add_shift(quantiles, shift)
    for low, high in ((0.1, 0.9), (0.025, 0.975)):
        inside = (truth[400:] >= calibrated[..., LEVELS.index(low)]) & (truth[400:] <= calibrated[..., LEVELS.index(high)])
        assert inside.mean() == pytest.approx(high - low, abs=0.03)


def test_a_calibration_is_saved_with_the_weights():
    first, second = Calibration(3, 2), Calibration(3, 2)
    shift = np.random.default_rng(0).normal(size=(len(LEVELS), 3, 2))
    first.set(shift)
    second.load_state_dict(first.state_dict())
    quantiles = np.zeros((4, 3, 2, len(LEVELS)))
    np.testing.assert_array_equal(first.apply_to(quantiles), second.apply_to(quantiles))
    assert (np.diff(first.apply_to(quantiles), axis=-1) >= 0).all()


def test_levels_between_those_of_a_calibration_are_interpolated():
    quantiles = np.array(LEVELS)[None] * 10
    np.testing.assert_allclose(interpolate_levels(quantiles, (0.025, 0.15, 0.5, 0.975)), [[0.25, 1.5, 5, 9.75]])
