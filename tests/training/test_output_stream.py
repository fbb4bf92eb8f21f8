import errno
import io
import os
import sys

import pytest

from regard.training.output_stream import Stream, guarded


class Broken(io.StringIO):
    """A stream whose writes fail with an error number."""

    def __init__(self, number):
        super().__init__()
        self.number, self.attempts = number, 0

    def write(self, text):
        self.attempts += 1
        raise OSError(self.number, os.strerror(self.number))


def test_what_is_written_reaches_the_reader():
    text, lost = io.StringIO(), []
    stream = Stream(text, lambda: lost.append(1))
    print("step 1", file=stream, flush=True)
    assert (text.getvalue(), lost, stream.isatty()) == ("step 1\n", [], False)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.EBADF])
def test_a_lost_reader_is_reported_once_and_nothing_more_is_written(number):
    broken, lost = Broken(number), []
    stream = Stream(broken, lambda: lost.append(1))
    for _ in range(3):
        print("step 1", file=stream, flush=True)
    assert (broken.attempts, lost) == (1, [1])


def test_a_closed_stream_has_lost_its_reader():
    text, lost = io.StringIO(), []
    text.close()
    Stream(text, lambda: lost.append(1)).write("x")
    assert lost == [1]


def test_a_full_disk_behind_it_is_no_lost_reader():
    broken, lost = Broken(errno.ENOSPC), []
    stream = Stream(broken, lambda: lost.append(1))
    for _ in range(3):
        stream.write("x")
    assert (broken.attempts, lost) == (3, [])


def test_a_character_that_the_encoding_lacks_is_an_error_as_ever():
    stream = Stream(io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True), lambda: None)
    with pytest.raises(UnicodeEncodeError):
        stream.write("猫")


def test_a_pipe_without_a_reader_leaves_nothing_that_fails_when_it_is_closed():
    there, here = os.pipe()
    os.close(there)
    file, lost = os.fdopen(here, "w"), []
    stream = Stream(file, lambda: lost.append(1))
    print("step 1", file=stream, flush=True)
    file.close()
    assert lost == [1]


def test_standard_error_is_guarded_inside_and_given_back(monkeypatch):
    broken, lost = Broken(errno.EPIPE), []
    monkeypatch.setattr(sys, "stderr", broken)
    with guarded(lambda: lost.append(1)):
        print("a warning", file=sys.stderr)
    assert sys.stderr is broken
    assert lost == [1]


def test_without_standard_error_there_is_nothing_to_guard(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with guarded(pytest.fail):
        assert sys.stderr is None
