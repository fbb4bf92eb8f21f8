import io

from regard.compare.progress import Display, Lines, Rows, display


class Terminal(io.StringIO):
    def isatty(self):
        return True


def told(shown):
    shown.begin("none, seed 0")
    shown.news("none, seed 0", "step 50 · loss 2.0")
    shown.end("none, seed 0", "bleu 12.0")
    shown.end("never, seed 0", "failed: stopped before it began")
    shown.close()


def test_a_file_gets_a_line_for_each_beginning_and_each_end():
    stream = io.StringIO()
    told(display(2, quiet=False, stream=stream))
    assert stream.getvalue().splitlines() == [
        "none, seed 0: training",
        "[1/2] none, seed 0: bleu 12.0",
        "[2/2] never, seed 0: failed: stopped before it began",
    ]


def test_quiet_says_nothing():
    stream = io.StringIO()
    shown = display(2, quiet=True, stream=stream)
    assert isinstance(shown, Lines)
    told(shown)
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_row_for_each_at_work_and_a_line_for_each_that_ended():
    stream = Terminal()
    shown = display(2, quiet=False, stream=stream)
    assert isinstance(shown, Rows)
    assert isinstance(shown, Display)
    told(shown)
    assert "[1/2] none, seed 0: bleu 12.0" in stream.getvalue()
    assert shown.rows == {}
