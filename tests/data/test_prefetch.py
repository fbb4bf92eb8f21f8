import threading

import pytest

from regard.data.prefetch import Ahead

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
    with Ahead(source) as ahead:
        for number in (3, 4, 5):
            assert ahead.batch(number).source.data.equal(Copies().batch(number).source.data)
    assert source.made[:3] == [(3, True), (4, False), (5, False)]


def test_batches_are_made_ready_where_they_are_made():
    where = []

    def ready(batch):
        where.append(threading.current_thread() is threading.main_thread())
        return batch._replace(records=("ready",))

    with Ahead(Copies(), ready) as ahead:
        assert [ahead.batch(number).records for number in (0, 1, 2)] == [("ready",)] * 3
    assert where[:3] == [True, False, False]


def test_a_jump_is_served_at_once():
    with Ahead(Watched()) as ahead:
        ahead.batch(0)
        assert ahead.batch(5).source.data.equal(Copies().batch(5).source.data)


def test_an_error_comes_with_its_own_batch_and_not_before():
    with Ahead(Watched()) as ahead:
        ahead.batch(6)
        with pytest.raises(ValueError, match="batch 7 is broken"):
            ahead.batch(7)


def test_batches_that_are_made_ahead_anyway_are_ended():
    class Closing(Copies):
        closed = False

        def close(self):
            self.closed = True

    batches = Closing()
    with Ahead(batches) as ahead:
        ahead.batch(0)
        assert not batches.closed
    assert batches.closed
