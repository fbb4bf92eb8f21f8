import os
import socket
import threading
from pathlib import Path

import pytest

from regard import inputs
from regard.inputs import is_pipe, open_regular, open_stream


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(inputs, "WAIT", 0.2)


@pytest.mark.parametrize("opened", [open_regular, open_stream])
def test_a_regular_file_is_opened(tmp_path, opened):
    (tmp_path / "a").write_bytes(b"abc")
    with opened(tmp_path / "a") as file:
        assert os.get_blocking(file.fileno())
        assert file.read() == b"abc"


@pytest.mark.parametrize("opened", [open_regular, open_stream])
def test_a_folder_and_what_is_not_there_are_what_they_always_were(tmp_path, opened):
    with pytest.raises(IsADirectoryError):
        opened(tmp_path)
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "none")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        opened(tmp_path / "loop")


def test_a_pipe_is_a_stream_as_soon_as_somebody_writes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe that nobody has written to for 0 seconds; start its writer first"):
        open_stream(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"abc",))
    writer.start()
    with open_stream(tmp_path / "pipe") as file:
        assert file.read() == b"abc"
    writer.join()


def test_a_process_that_has_ended_already_is_read_to_its_end():
    ends = os.pipe()
    os.write(ends[1], b"abc")
    os.close(ends[1])
    with open_stream(f"/dev/fd/{ends[0]}") as file:
        assert file.read() == b"abc"
    with open_stream(f"/dev/fd/{ends[0]}") as file:  # nothing is left, and nobody writes
        assert file.read() == b""
    os.close(ends[0])


def test_a_pipe_and_a_device_are_no_regular_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe, and a regular file is needed; copy what it holds into one"):
        open_regular(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a device, and a regular file is needed"):
        open_regular("/dev/zero")
    with pytest.raises(OSError, match="it is a device, and a file or a pipe is needed"):
        open_stream("/dev/zero")


def test_a_socket_is_no_file(tmp_path):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="No such device"):
            open_stream(tmp_path / "s")


def test_what_is_refused_leaves_nothing_open(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match=r"directory|pipe|device"):
            open_stream(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_pipe_is_known_by_its_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert is_pipe(tmp_path / "pipe")
    assert not any(map(is_pipe, (tmp_path, tmp_path / "none", "x" * 300, "a\0b")))
