from threading import Barrier, Event

import pytest

from regard.data.prefetch_ahead import Window


def test_things_are_what_they_are_in_whatever_order_they_are_asked_for():
    window = Window(lambda number: number * number, 3)
    asked = [0, 1, 2, 7, 8, 3, 3, 100, 4]
    assert [window(number) for number in asked] == [number * number for number in asked]
    window.close()
    assert window(5) == 25, "after the end there is a new beginning"
    window.close()


def test_what_follows_is_begun_before_it_is_asked_for_several_at_once():
    together = Barrier(3, timeout=10)  # numbers 1, 2 and 3 are under way at the same time

    def make(number):
        if number:
            together.wait()
        return number

    window = Window(make, 3, end=4)
    assert [window(number) for number in range(4)] == [0, 1, 2, 3]
    window.close()


def test_nothing_beyond_the_end_is_made():
    made = []
    window = Window(made.append, 2, end=3)
    for number in range(3):
        window(number)
    window.close()
    assert sorted(made) == [0, 1, 2]


def test_without_a_width_nothing_is_made_ahead():
    made = []
    window = Window(made.append, 0)
    window(4)
    window.close()
    assert made == [4]


def test_an_error_comes_when_its_number_is_asked_for_and_again_if_it_is_asked_for_again():
    reached = Event()

    def make(number):
        if number == 1:
            reached.set()
            raise ValueError("broken")
        return number

    window = Window(make, 2)
    assert window(0) == 0
    assert reached.wait(10)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            window(1)
    assert window(2) == 2
    window.close()


def test_a_negative_width_is_refused():
    with pytest.raises(ValueError, match="a width of 0 or more, got -1"):
        Window(str, -1)
