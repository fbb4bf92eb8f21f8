import errno
import os

import pytest

from regard.training import atomic
from regard.training.errors import FailedError


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    atomic.write(tmp_path / "a", b"old")
    atomic.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_every_file_is_synced_before_the_rename_and_its_directory_after(tmp_path, monkeypatch):
    seen = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(os.readlink(f"/proc/self/fd/{handle}")), sync(handle)))
    monkeypatch.setattr(os, "rename", lambda a, b: (seen.append(f"{a.name} -> {b.name}"), rename(a, b)))
    atomic.write_directory(tmp_path / "5", {"x": b"1", "y": b"2"})
    there = tmp_path / ".tmp-5"
    assert seen == [f"{there}/x", f"{there}/y", str(there), ".tmp-5 -> 5", str(tmp_path)]


def test_a_directory_takes_the_place_of_one_that_stands_there(tmp_path):
    atomic.write_directory(tmp_path / "5", {"x": b"1", "y": b"2"})
    atomic.write_directory(tmp_path / "5", {"x": b"3"})
    assert [path.name for path in (tmp_path / "5").iterdir()] == ["x"]
    assert os.listdir(tmp_path) == ["5"]


def test_a_directory_may_have_others_in_it(tmp_path):
    atomic.write_directory(tmp_path / "5", {"below/x": b"1"})
    assert (tmp_path / "5" / "below" / "x").read_bytes() == b"1"


def test_what_was_left_half_written_is_swept_away_and_nothing_else(tmp_path):
    (tmp_path / ".tmp-a").write_bytes(b"x")
    (tmp_path / ".tmp-b").mkdir()
    (tmp_path / ".tmp-b" / "c").write_bytes(b"x")
    (tmp_path / "kept").write_bytes(b"x")
    atomic.sweep(tmp_path)
    assert os.listdir(tmp_path) == ["kept"]


def test_removal_of_what_is_not_there_is_no_error(tmp_path):
    atomic.remove(tmp_path / "nothing")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_reported_with_path_and_bytes_and_leaves_the_old_file(tmp_path, monkeypatch, code):
    atomic.write(tmp_path / "a", b"old")

    def full(handle):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FailedError, match=r"no room to write .*/a: it needs 3 bytes and [\d,]+ are free .*make room"):
        atomic.write(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError):
        atomic.write(tmp_path / "none" / "a", b"x")
