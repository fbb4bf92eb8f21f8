import io

from regard.cli._progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_a_line_now_and_then_with_speed_and_time_left():
    times, stream = iter([0.0, 1.0, 10.0, 11.0]), io.StringIO()
    progress = ProgressLine(1100, done=100, stream=stream, clock=lambda: next(times))
    progress.advance(50)
    progress.advance(50)
    progress.advance(1)
    progress.end()
    assert stream.getvalue() == "200 of 1,100 lines · 10.0 lines/s · 1:30 left\n"


def test_a_terminal_gets_one_line_that_changes():
    times, stream = iter([0.0, 1.0, 2.0, 2.0]), Terminal()
    progress = ProgressLine(None, stream=stream, clock=lambda: next(times))
    progress.advance(4)
    progress.advance(4)
    progress.end()
    last = "\r8 lines · 4.0 lines/s\x1b[K"
    assert stream.getvalue() == f"\r4 lines · 4.0 lines/s\x1b[K{last}{last}\n"


def test_short_work_says_nothing():
    times, stream = iter([0.0, 0.1]), Terminal()
    progress = ProgressLine(3, stream=stream, clock=lambda: next(times))
    progress.advance(3)
    progress.end()
    assert stream.getvalue() == ""
