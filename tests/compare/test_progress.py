import io
import signal
import sys

import pytest

from regard.compare.progress import Display, Lines, Rows, create_display
from regard.compare.workers import Job, run_jobs
from regard.errors import Interrupted


class Terminal(io.StringIO):
    def isatty(self):
        return True


def told(shown):
    shown.begin("none, seed 0")
    shown.update("none, seed 0", "step 50 · loss 2.0")
    shown.end("none, seed 0", "bleu 12.0")
    shown.end("never, seed 0", "failed: stopped before it began")
    shown.close()


def test_a_file_gets_a_line_for_each_beginning_and_each_end():
    stream = io.StringIO()
    told(create_display(2, quiet=False, stream=stream))
    assert stream.getvalue().splitlines() == [
        "none, seed 0: training",
        "[1/2] none, seed 0: bleu 12.0",
        "[2/2] never, seed 0: failed: stopped before it began",
    ]


def test_quiet_says_nothing():
    stream = io.StringIO()
    shown = create_display(2, quiet=True, stream=stream)
    assert isinstance(shown, Lines)
    told(shown)
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_row_for_each_at_work_and_a_line_for_each_that_ended():
    stream = Terminal()
    shown = create_display(2, quiet=False, stream=stream)
    assert isinstance(shown, Rows)
    assert isinstance(shown, Display)
    told(shown)
    assert "[1/2] none, seed 0: bleu 12.0" in stream.getvalue()
    assert shown.rows == {}


class Gone(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


def test_a_comparison_whose_reader_is_gone_stops_its_workers_as_a_closed_terminal_does():
    body = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\ntime.sleep(30)"
    command = [sys.executable, "-S", "-c", body]
    with pytest.raises(Interrupted) as caught:
        run_jobs([Job("a", {})], 1, create_display(1, quiet=False, stream=Gone()), lambda job, reason: None, command)
    assert caught.value.code == 129


def test_where_nobody_takes_care_of_a_hang_up_a_lost_reader_ends_nothing():
    before = signal.getsignal(signal.SIGHUP)
    assert before == signal.SIG_DFL
    told(create_display(2, quiet=False, stream=Gone()))


def test_without_any_standard_error_a_comparison_is_quiet(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    told(create_display(2, quiet=False))
