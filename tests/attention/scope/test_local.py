import pytest

from regard.attention.scope.local import Local


def test_a_query_sees_its_neighbours_on_either_side(draw):
    assert draw(Local(1), 5, 5) == ["11000", "11100", "01110", "00111", "00011"]


def test_a_window_of_zero_is_the_query_alone(draw):
    assert draw(Local(0), 3, 3) == ["100", "010", "001"]


def test_a_wide_window_is_everything(draw):
    assert draw(Local(9), 3, 3) == ["111", "111", "111"]


def test_a_negative_window_is_refused():
    with pytest.raises(ValueError, match="Local needs a window of 0 or more positions on either side, got -1"):
        Local(-1)
