import io

from regard.cli._progress import Pace


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_a_line_now_and_then_with_speed_and_time_left():
    times, stream = iter([0.0, 1.0, 10.0, 11.0]), io.StringIO()
    pace = Pace(1100, done=100, stream=stream, clock=lambda: next(times))
    pace.advance(50)
    pace.advance(50)
    pace.advance(1)
    pace.end()
    assert stream.getvalue() == "200 of 1,100 lines · 10.0 lines/s · 1:30 left\n"


def test_a_terminal_gets_one_line_that_changes():
    times, stream = iter([0.0, 1.0, 2.0, 2.0]), Terminal()
    pace = Pace(None, stream=stream, clock=lambda: next(times))
    pace.advance(4)
    pace.advance(4)
    pace.end()
    last = "\r8 lines · 4.0 lines/s\x1b[K"
    assert stream.getvalue() == f"\r4 lines · 4.0 lines/s\x1b[K{last}{last}\n"


def test_short_work_says_nothing():
    times, stream = iter([0.0, 0.1]), Terminal()
    pace = Pace(3, stream=stream, clock=lambda: next(times))
    pace.advance(3)
    pace.end()
    assert stream.getvalue() == ""
