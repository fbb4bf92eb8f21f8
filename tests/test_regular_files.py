import io
import os
import socket

import pytest

from regard.errors import DamagedError
from regard.regular_files import open_regular, read_exactly, read_regular


@pytest.fixture
def root(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_bytes(b"content")
    return tmp_path / "run"


def test_a_regular_file_is_read(root):
    assert read_regular(root / "file") == b"content"


def test_a_file_larger_than_one_read_is_read_whole(root, monkeypatch):
    class Short(io.FileIO):
        """A file of which the system gives three bytes at once, as Linux gives at most 2 GiB."""

        def read(self, size=-1):
            return super().read(min(size, 3))

    monkeypatch.setattr("regard.regular_files.os.fdopen", lambda handle, mode, buffering: Short(handle))
    assert read_regular(root / "file") == b"content"


def test_a_link_to_a_directory_or_inside_of_it_is_followed(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    (root / "again").symlink_to("file")
    assert read_regular(tmp_path / "link" / "file", root=tmp_path / "link") == b"content"
    assert read_regular(root / "again", root=root) == b"content"


def test_a_link_that_leads_out_is_refused(root, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "link").symlink_to(tmp_path / "secret")
    assert read_regular(root / "link") == b"secret"
    with pytest.raises(DamagedError, match=r"link is a link that leads out of .*run: put a copy of the file in its place"):
        read_regular(root / "link", root=root)


@pytest.mark.timeout(20)
def test_what_is_no_regular_file_is_neither_waited_for_nor_read(root):
    os.mkfifo(root / "pipe")
    with pytest.raises(DamagedError, match=r"pipe is no regular file but a pipe: put the file itself there"):
        read_regular(root / "pipe")
    (root / "endless").symlink_to("/dev/zero")
    with pytest.raises(DamagedError, match=r"endless is no regular file but a device"):
        read_regular(root / "endless")
    with pytest.raises(DamagedError, match=r"run is no regular file but a directory"):
        read_regular(root)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(root / "socket"))
        with pytest.raises(DamagedError, match=r"socket is no regular file but a socket"):
            read_regular(root / "socket")


@pytest.mark.timeout(20)
def test_what_takes_the_place_of_a_file_after_it_was_looked_at_is_not_waited_for_either(root, monkeypatch):
    os.mkfifo(root / "pipe")
    status = os.stat(root / "file")
    monkeypatch.setattr("regard.regular_files.os.stat", lambda path: status)
    with pytest.raises(DamagedError, match="pipe is no regular file but a pipe"):
        open_regular(root / "pipe")


def test_no_more_than_the_limit_is_read(root):
    assert read_regular(root / "file", limit=7) == b"content"
    with pytest.raises(DamagedError, match=r"file has 7 bytes, and at most 6 are read of it"):
        read_regular(root / "file", limit=6)
    os.truncate(root / "file", 2**40)
    with pytest.raises(DamagedError, match=r"file has 1,099,511,627,776 bytes, and at most 268,435,456 are read of it"):
        read_regular(root / "file")


def test_a_file_that_is_missing_or_has_an_impossible_name_is_named(root):
    with pytest.raises(DamagedError, match="nowhere is missing"):
        read_regular(root / "nowhere")
    (root / "loop").symlink_to("loop")
    with pytest.raises(DamagedError, match="loop cannot be read: Too many levels of symbolic links"):
        read_regular(root / "loop")
    with pytest.raises(DamagedError, match="cannot be read: embedded null byte"):
        read_regular(root / "a\0b", root=root)


def test_a_file_that_has_become_shorter_is_damaged(root):
    with open_regular(root / "file") as file, pytest.raises(DamagedError, match="file ends after 7 of 9 bytes"):
        read_exactly(file, 9, root / "file")
