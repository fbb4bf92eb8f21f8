import io

import pytest

from regard.training.progress import Bar, Lines, format_record, format_time, open_display

RECORD = {"step": 50, "loss": 2.0314, "tokens_per_second": 5120.4, "skipped": 0}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_figures_read_as_one_line():
    assert format_record(RECORD, 90.0) == "loss 2.031 · 5,120 tokens/s · 1:30 left"
    assert format_record({**RECORD, "loss": None, "skipped": 2}, None) == "loss - · 5,120 tokens/s · 2 skipped"


def test_waiting_for_batches_is_told_where_it_takes_more_than_a_tenth_of_the_time():
    assert format_record({**RECORD, "waited": 0.1}, None) == "loss 2.031 · 5,120 tokens/s"
    assert (
        format_record({**RECORD, "waited": 0.234}, None)
        == "loss 2.031 · 5,120 tokens/s · 23 % of the time waiting for batches"
    )


@pytest.mark.parametrize(
    ("waited", "idle", "told"),
    [
        (0.0, 0.08, ""),
        (0.02, 0.31, " · GPU idle for 31 % of the time, waiting for Python between updates"),
        (0.3, 0.31, " · GPU idle for 31 % of the time, waiting for batches"),
        (0.4, 0.02, ""),  # the host waits for a batch while the GPU has work
    ],
)
def test_a_gpu_that_rests_is_told_with_what_it_waits_for(waited, idle, told):
    assert format_record({**RECORD, "waited": waited, "idle": idle}, None) == "loss 2.031 · 5,120 tokens/s" + told


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0:00"), (59.6, "1:00"), (3723.0, "1:02:03"), (-5.0, "0:00")])
def test_a_clock_reads_as_one(seconds, text):
    assert format_time(seconds) == text


def test_a_file_gets_plain_lines():
    stream = io.StringIO()
    with open_display(100, stream=stream) as shown:
        shown.advance(50)
        shown.show(RECORD, 90.0)
        shown.say("finished: all is done")
    assert stream.getvalue() == "step 50 · loss 2.031 · 5,120 tokens/s · 1:30 left\nfinished: all is done\n"


def test_a_terminal_gets_a_bar_with_loss_speed_and_time_left():
    stream = Terminal()
    with open_display(100, stream=stream) as shown:
        assert isinstance(shown, Bar)
        shown.advance(50)
        shown.show(RECORD, 90.0)
        shown.say("valid [loss] 1")
    text = stream.getvalue()
    assert "50/100" in text
    assert "1:30 left" in text
    assert "valid [loss] 1" in text


def test_quiet_says_nothing(capsys):
    with open_display(100, quiet=True) as shown:
        assert isinstance(shown, Lines)
        shown.show(RECORD, 1.0)
        shown.say("x")
    assert capsys.readouterr() == ("", "")
