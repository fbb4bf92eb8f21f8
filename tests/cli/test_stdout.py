import errno
import io
import os
import threading

import pytest

from regard.cli._stdout import StandardOutput
from regard.errors import DataError

from .conftest import ready

FULL = "standard output cannot be written: No space left on device. The last answers are cut off; make room, or name a file"
LINES = "Tom chases Jerry\nMary likes Tom\n"


def ask(tmp_path, stream, *arguments):
    """A command whose standard output is this file; its exit status and its errors."""
    said = tmp_path / "said.txt"
    (tmp_path / "in.txt").write_text(LINES)
    request = {"arguments": list(map(str, arguments)), "folder": str(tmp_path), "surroundings": dict(os.environ)}
    streams = [str(each) for each in (tmp_path / "in.txt", stream, said)]
    return ready._ask({**request, "streams": streams}), said.read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [(), ("--stream",)], ids=str)
def test_a_full_standard_output_ends_in_one_paragraph(run_directory, tmp_path, options):
    code, said = ask(tmp_path, "/dev/full", "predict", run_directory, *options)
    assert code == 2
    assert said.startswith(f"regard: {FULL}")
    assert len(said.splitlines()) == 1


def test_a_pipe_whose_reader_is_gone_ends_quietly(run_directory, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: pipe.open("rb").close())
    reader.start()
    code, said = ask(tmp_path, pipe, "predict", run_directory)
    reader.join()
    assert (code, said) == (1, "")


@pytest.mark.parametrize("name", ["write", "flush"])
def test_what_keeps_a_stream_from_being_written_is_an_error_of_the_data_and_is_not_tried_again(tmp_path, name):
    with (tmp_path / "out.txt").open("w") as file:
        stream = StandardOutput(Failing(file, name, errno.ENOSPC))
        with pytest.raises(DataError, match=FULL):
            getattr(stream, name)(*["text"][: name == "write"])
        file.write("what was left in the buffer")
    assert (tmp_path / "out.txt").read_text() == ""


def test_a_pipe_that_was_closed_stays_what_it_is(tmp_path):
    with (tmp_path / "out.txt").open("w") as file, pytest.raises(BrokenPipeError):
        StandardOutput(Failing(file, "write", errno.EPIPE)).write("text")


def test_a_standard_output_that_is_closed_is_told(monkeypatch):
    told = "answers go to standard output, and it is closed; open it, or name a file with --out"
    closed = io.StringIO()
    closed.close()
    with pytest.raises(DataError, match=told):
        StandardOutput(closed)
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(DataError, match=told):
        StandardOutput()


class Failing:
    """A stream on a file that fails at one of its methods."""

    closed = False

    def __init__(self, file: io.TextIOWrapper, name: str, number: int):
        self.fileno = file.fileno

        def fail(*given: object) -> None:
            raise OSError(number, os.strerror(number))

        setattr(self, name, fail)
