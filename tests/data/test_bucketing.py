import numpy as np
import pytest

from regard.data.bucketing import round_length, round_lengths


def test_short_lengths_stay_and_long_ones_are_rounded_up_a_little():
    assert round_lengths(np.array([0, 1, 7, 8, 9, 10, 17, 33]), 4).tolist() == [0, 1, 7, 8, 10, 10, 20, 40]


def test_no_length_grows_by_more_than_its_share():
    lengths = np.arange(1, 5000)
    rounded = round_lengths(lengths, 16)
    assert (rounded >= lengths).all()
    assert (rounded - lengths < lengths / 16).all()
    assert len(np.unique(rounded)) < 200


@pytest.mark.parametrize(
    ("length", "rounded"), [(1, 4), (4, 4), (5, 8), (32, 32), (33, 40), (64, 64), (65, 80), (129, 160), (300, 320)]
)
def test_a_padded_length_doubles_in_eight_steps(length, rounded):
    assert round_length(length, 8) == rounded


@pytest.mark.parametrize(("length", "rounded"), [(1, 4), (13, 16), (17, 24), (32, 32), (33, 48), (49, 64), (65, 96)])
def test_a_padded_length_doubles_in_four_steps(length, rounded):
    assert round_length(length, 4) == rounded
