import numpy as np

from regard.data.bucketing import levels


def test_short_lengths_stay_and_long_ones_are_rounded_up_a_little():
    assert levels(np.array([0, 1, 7, 8, 9, 10, 17, 33]), 4).tolist() == [0, 1, 7, 8, 10, 10, 20, 40]


def test_no_length_grows_by_more_than_its_share():
    lengths = np.arange(1, 5000)
    rounded = levels(lengths, 16)
    assert (rounded >= lengths).all()
    assert (rounded - lengths < lengths / 16).all()
    assert len(np.unique(rounded)) < 200
