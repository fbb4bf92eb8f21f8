import math

import pytest

from regard.compare.spread import Spread, decimals, format_number, is_indistinguishable, mark_best


def test_mean_and_deviation_are_those_of_a_sample():
    assert Spread((10.0, 12.0)).mean == 11
    assert Spread((10.0, 12.0)).deviation == pytest.approx(math.sqrt(2))
    assert Spread((10.0,)).deviation is None


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((10.0, 12.0), "11.0 ± 1.4"),
        ((31.24, 31.3, 31.18), "31.240 ± 0.060"),
        ((0.5, 0.5), "0.5000 ± 0.0000"),
        ((0.0, 0.0), "0 ± 0"),
        ((20_000.0, 30_000.0), "25,000 ± 7,071"),
        ((31.24,), "31.2"),
        ((1.8,), "1.80"),
        ((28_550.0,), "28,550"),
    ],
)
def test_a_mean_has_the_places_that_its_spread_leaves_it(values, text):
    assert str(Spread(values)) == text


def test_two_are_near_when_their_means_differ_by_less_than_two_trainings_do():
    wide, narrow = Spread((7.0, 13.0)), Spread((15.9, 16.1))  # means 10 and 16, deviations 4.243 and 0.141
    assert not is_indistinguishable(wide, narrow)
    assert is_indistinguishable(wide, Spread((14.0, 14.4)))
    assert not is_indistinguishable(Spread((10.0,)), Spread((10.5,))), (
        "of one training each nothing is known, and nothing is called near"
    )


def test_the_best_is_marked_and_what_cannot_be_told_from_it():
    found = {"a": Spread((30.0, 32.0)), "b": Spread((30.0, 31.0)), "c": Spread((10.0, 11.0))}
    assert mark_best(found, less=False) == {"a": "best", "b": "near"}
    assert mark_best(found, less=True) == {"c": "best"}
    assert mark_best({}, less=True) == {}
    ties = {"a": Spread((30.0, 32.0)), "b": Spread((31.0,)), "c": Spread((30.5, 31.0))}
    assert mark_best(ties, less=False) == {"a": "best", "b": "best", "c": "near"}


def test_numbers_keep_three_digits():
    assert [format_number(x) for x in (1234.5, 99.94, 9.6, 0.05)] == ["1,234", "99.9", "9.60", "0.0500"]
    assert [decimals(x) for x in (0.0, 12.0, 1.4, 0.03, 1e-9)] == [0, 0, 1, 3, 4]
