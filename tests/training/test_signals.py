import os
import signal
import threading

import pytest

from regard.errors import Interrupted
from regard.training.signals import Interruption


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_is_remembered_and_the_handlers_are_given_back(number, code):
    before = signal.getsignal(number)
    with Interruption() as interruption:
        assert signal.getsignal(number) != before
        os.kill(os.getpid(), number)
        assert interruption.signal == number
        assert signal.getsignal(number) == before
        assert interruption.exit().code == code
    assert signal.getsignal(number) == before


def test_inside_at_once_a_signal_raises():
    with Interruption() as interruption:
        with pytest.raises(Interrupted), interruption.at_once():
            os.kill(os.getpid(), signal.SIGTERM)
        assert not interruption.raising


def test_a_signal_that_came_before_raises_on_entering():
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted), interruption.at_once():
            pytest.fail("not reached")


def test_in_another_thread_signals_are_left_alone():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with Interruption():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_hang_up_comes_twice_when_a_terminal_is_closed_and_ends_once():
    before = signal.getsignal(signal.SIGHUP)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.exit().code == 129
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_hang_up_after_another_signal_does_not_end_the_saving():
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.exit().code == 143


def test_under_nohup_a_hang_up_ends_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interruption.signal is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_lost_reader_counts_as_a_broken_pipe_unless_a_signal_came_first():
    with Interruption() as interruption:
        interruption.lose_reader()
        assert interruption.exit().code == 141
        interruption.signal = signal.SIGHUP
        interruption.lose_reader()
        assert interruption.exit().code == 129
