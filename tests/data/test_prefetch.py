import gc
import threading
import weakref
from threading import Barrier, Event

import pytest

from regard.data.prefetch import PrefetchedBatches, Prefetcher, bind_weakly

from ..training.small import Copies


class Watched(Copies):
    def __init__(self):
        super().__init__()
        self.made = []

    def batch(self, step):
        self.made.append((step, threading.current_thread() is threading.main_thread()))
        if step == 7:
            raise ValueError("batch 7 is broken")
        return super().batch(step)


def test_the_next_batch_is_made_elsewhere_and_is_the_same():
    source = Watched()
    with PrefetchedBatches(source) as ahead:
        for number in (3, 4, 5):
            assert ahead.batch(number).source.data.equal(Copies().batch(number).source.data)
    assert source.made[:3] == [(3, True), (4, False), (5, False)]


def test_batches_are_made_ready_where_they_are_made():
    where = []

    def ready(batch):
        where.append(threading.current_thread() is threading.main_thread())
        return batch._replace(records=("ready",))

    with PrefetchedBatches(Copies(), ready) as ahead:
        assert [ahead.batch(number).records for number in (0, 1, 2)] == [("ready",)] * 3
    assert where[:3] == [True, False, False]


def test_a_jump_is_served_at_once():
    with PrefetchedBatches(Watched()) as ahead:
        ahead.batch(0)
        assert ahead.batch(5).source.data.equal(Copies().batch(5).source.data)


def test_an_error_comes_with_its_own_batch_and_not_before():
    with PrefetchedBatches(Watched()) as ahead:
        ahead.batch(6)
        with pytest.raises(ValueError, match="batch 7 is broken"):
            ahead.batch(7)


def test_batches_that_are_made_ahead_anyway_are_ended():
    class Closing(Copies):
        closed = False

        def close(self):
            self.closed = True

    batches = Closing()
    with PrefetchedBatches(batches) as ahead:
        ahead.batch(0)
        assert not batches.closed
    assert batches.closed


def test_things_are_what_they_are_in_whatever_order_they_are_asked_for():
    prefetcher = Prefetcher(lambda number: number * number, 3)
    asked = [0, 1, 2, 7, 8, 3, 3, 100, 4]
    assert [prefetcher(number) for number in asked] == [number * number for number in asked]
    prefetcher.close()
    assert prefetcher(5) == 25, "after the end there is a new beginning"
    prefetcher.close()


def test_what_follows_is_begun_before_it_is_asked_for_several_at_once():
    together = Barrier(3, timeout=10)  # numbers 1, 2 and 3 are under way at the same time

    def make(number):
        if number:
            together.wait()
        return number

    prefetcher = Prefetcher(make, 3, end=4)
    assert [prefetcher(number) for number in range(4)] == [0, 1, 2, 3]
    prefetcher.close()


def test_nothing_beyond_the_end_is_made():
    made = []
    prefetcher = Prefetcher(made.append, 2, end=3)
    for number in range(3):
        prefetcher(number)
    prefetcher.close()
    assert sorted(made) == [0, 1, 2]


def test_without_a_width_nothing_is_made_ahead():
    made = []
    prefetcher = Prefetcher(made.append, 0)
    prefetcher(4)
    prefetcher.close()
    assert made == [4]


def test_an_error_comes_when_its_number_is_asked_for_and_again_if_it_is_asked_for_again():
    reached = Event()

    def make(number):
        if number == 1:
            reached.set()
            raise ValueError("broken")
        return number

    prefetcher = Prefetcher(make, 2)
    assert prefetcher(0) == 0
    assert reached.wait(10)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            prefetcher(1)
    assert prefetcher(2) == 2
    prefetcher.close()


def test_a_negative_width_is_refused():
    with pytest.raises(ValueError, match="a width of 0 or more, got -1"):
        Prefetcher(str, -1)


class Owner:
    def __init__(self):
        self.kept = bind_weakly(self.twice)

    def twice(self, number: int) -> int:
        return 2 * number


def test_an_owner_may_keep_its_method_and_is_gone_with_the_last_who_holds_it():
    gc.disable()
    try:
        owner = Owner()
        kept, seen = owner.kept, weakref.ref(owner)
        assert kept(4) == 8
        del owner
        assert seen() is None
    finally:
        gc.enable()
    with pytest.raises(
        ReferenceError, match="the owner of this method is gone; keep it for as long as the method is called"
    ):
        kept(4)
