import errno
import os
import re
import stat

import pytest

from regard import io
from regard.errors import FailedError, UnwritableError


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    io.write(tmp_path / "a", b"old")
    io.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_every_file_is_synced_before_the_rename_and_its_directory_after(tmp_path, monkeypatch):
    seen = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(os.readlink(f"/proc/self/fd/{handle}")), sync(handle)))
    monkeypatch.setattr(os, "rename", lambda a, b: (seen.append(f"{a.name} -> {b.name}"), rename(a, b)))
    io.write_directory(tmp_path / "5", {"x": b"1", "y": b"2"})
    temporary = seen[2].rpartition("/")[2]
    there = tmp_path / temporary
    assert re.fullmatch(r"\.tmp-[0-9a-f]{16}", temporary)
    assert seen == [f"{there}/x", f"{there}/y", str(there), f"{temporary} -> 5", str(tmp_path)]


def test_a_directory_takes_the_place_of_one_that_stands_there(tmp_path):
    io.write_directory(tmp_path / "5", {"x": b"1", "y": b"2"})
    io.write_directory(tmp_path / "5", {"x": b"3"})
    assert [path.name for path in (tmp_path / "5").iterdir()] == ["x"]
    assert os.listdir(tmp_path) == ["5"]


def test_a_directory_may_have_others_in_it(tmp_path):
    io.write_directory(tmp_path / "5", {"below/x": b"1"})
    assert (tmp_path / "5" / "below" / "x").read_bytes() == b"1"


def test_what_was_left_half_written_is_swept_away_and_nothing_else(tmp_path):
    (tmp_path / ".tmp-a").write_bytes(b"x")
    (tmp_path / ".tmp-b").mkdir()
    (tmp_path / ".tmp-b" / "c").write_bytes(b"x")
    (tmp_path / "kept").write_bytes(b"x")
    io.sweep(tmp_path)
    assert os.listdir(tmp_path) == ["kept"]


def test_removal_of_what_is_not_there_is_no_error(tmp_path):
    io.remove(tmp_path / "nothing")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_reported_with_path_and_bytes_and_leaves_the_old_file(tmp_path, monkeypatch, code):
    io.write(tmp_path / "a", b"old")

    def full(handle):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FailedError, match=r"no room to write .*/a: it needs 3 bytes and [\d,]+ are free .*make room"):
        io.write(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


WRITERS = {
    "write": lambda path: io.write(path, b"new"),
    "write_directory": lambda path: io.write_directory(path, {"x": b"new"}),
}
REASONS = {
    errno.EACCES: "Permission denied; choose a place that can be written",
    errno.EROFS: "Read-only file system; choose a place that can be written",
    errno.EIO: "Input/output error; choose a place that can be written",
    errno.ELOOP: "Too many levels of symbolic links; choose a place that can be written",
    errno.ENOTDIR: "Not a directory; choose a place that can be written",
    errno.EISDIR: "Is a directory; name a file, not a directory",
    errno.ENAMETOOLONG: "File name too long; choose a shorter name",
    errno.ENOENT: "No such file or directory; make its directory first, or choose another place",
}


@pytest.mark.parametrize("call", ["open", "fsync", "rename"])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("code", REASONS, ids=errno.errorcode.get)
def test_an_error_of_writing_names_the_path_and_the_reason_and_leaves_nothing(tmp_path, monkeypatch, code, writer, call):
    real = os.open

    def fail(path, flags=os.O_CREAT, *more, **options):
        if call == "open" and not flags & os.O_CREAT:  # what is removed afterwards is opened too
            return real(path, flags, *more, **options)
        raise OSError(code, os.strerror(code), str(path))

    for name in ("rename", "replace") if call == "rename" else (call,):
        monkeypatch.setattr(os, name, fail)
    with pytest.raises(UnwritableError) as caught:
        WRITERS[writer](tmp_path / "a")
    monkeypatch.undo()
    assert str(caught.value) == f"cannot write {tmp_path / 'a'}: {REASONS[code]}"
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_is_reported_where_its_room_is_not_known(tmp_path):
    told = str(io.unwritable(tmp_path / "none" / "a", OSError(errno.ENOSPC, "No space left on device")))
    assert "it needs more than is there and an unknown number are free (No space left on device)" in told


def test_a_reader_that_is_gone_is_no_error_of_the_file_being_written(tmp_path):
    with pytest.raises(BrokenPipeError), io.room(tmp_path / "a"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def write_half(path, error):
    with io.replacing(path) as file:
        file.write(b"half")
        raise error


def test_an_error_of_the_block_is_its_own_and_nothing_is_left(tmp_path):
    for error in (PermissionError(errno.EACCES, "an input"), KeyboardInterrupt(), BrokenPipeError()):
        with pytest.raises(type(error)):
            write_half(tmp_path / "a", error)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_that_lies_under_a_temporary_name_is_neither_followed_nor_removed(tmp_path, monkeypatch, writer):
    (tmp_path / "victim").write_bytes(b"mine")
    for name in (".tmp-a", ".tmp-old-a"):
        (tmp_path / name).symlink_to("victim")
    WRITERS[writer](tmp_path / "a")
    WRITERS[writer](tmp_path / "a")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == [".tmp-a", ".tmp-old-a", "a", "victim"]


@pytest.mark.parametrize("writer", WRITERS)
def test_even_a_name_that_was_guessed_is_not_followed(tmp_path, monkeypatch, writer):
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / ".tmp-guessed").symlink_to("victim")
    monkeypatch.setattr(io, "temporary_name", lambda directory: directory / ".tmp-guessed")
    with pytest.raises(UnwritableError, match=r"cannot write .*: File exists; choose a place that can be written"):
        WRITERS[writer](tmp_path / "a")
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_an_output_that_is_a_link_becomes_a_file_and_what_it_pointed_at_stays(tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    for target in ("victim", "nothing"):
        (tmp_path / "a").unlink(missing_ok=True)
        (tmp_path / "a").symlink_to(target)
        io.write(tmp_path / "a", b"new")
        assert not (tmp_path / "a").is_symlink()
        assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["a", "victim"]


def test_a_directory_takes_the_place_of_a_link_and_what_it_pointed_at_stays(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "x").write_bytes(b"mine")
    for target in ("victim", "nothing"):
        io.remove(tmp_path / "a")
        (tmp_path / "a").symlink_to(target)
        io.write_directory(tmp_path / "a", {"x": b"new"})
        assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "victim" / "x").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["a", "victim"]


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_takes_the_place_of_no_directory_and_no_pipe(tmp_path, linked):
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "p")
    for name, why in (("d", "Is a directory; name a file"), ("p", "it is a device or a pipe; name a regular file")):
        target = tmp_path / (f"to-{name}" if linked else name)
        if linked:
            target.symlink_to(name)
        for act in (lambda path: io.write(path, b"new"), io.check_target):
            with pytest.raises(UnwritableError, match=f"cannot write .*{name}: {why}"):
                act(target)
    assert stat.S_ISFIFO((tmp_path / "p").stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_are_those_that_the_umask_leaves_also_where_another_file_stood(tmp_path, mask):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    before = os.umask(mask)
    try:
        io.write(tmp_path / "a", b"new")
        io.write_directory(tmp_path / "d", {"x": b"new"})
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "d", "d/x")]
    assert modes == [0o666 & ~mask, 0o777 & ~mask, 0o666 & ~mask]


def test_a_name_as_long_as_the_file_system_takes_can_be_written(tmp_path):
    for writer in WRITERS:
        WRITERS[writer](tmp_path / (writer[0] * 255))
    assert sorted(map(len, os.listdir(tmp_path))) == [255]


def test_a_sweep_leaves_what_a_live_process_is_writing(tmp_path):
    with io.replacing(tmp_path / "a") as file:
        file.write(b"new")
        io.sweep(tmp_path)
    assert (tmp_path / "a").read_bytes() == b"new"
    with io._locked(tmp_path):
        assert io._in_use(tmp_path)
    assert not io._in_use(tmp_path)
    assert not io._in_use(tmp_path / "nothing")


def test_a_sweep_clears_links_away_and_not_what_they_point_at(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / ".tmp-a").symlink_to("victim")
    (tmp_path / ".tmp-b").symlink_to("nothing")
    os.mkfifo(tmp_path / ".tmp-c")
    io.sweep(tmp_path)
    assert os.listdir(tmp_path) == ["victim"]


def test_a_target_is_checked_before_anything_is_computed_and_stays_as_it_is(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    before = (tmp_path / "a").stat().st_mtime_ns
    io.check_target(tmp_path / "a")
    io.check_target(tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").stat().st_mtime_ns == before
    with pytest.raises(UnwritableError, match=r"cannot write .*/no/a: there is no directory .*/no; make it first"):
        io.check_target(tmp_path / "no" / "a")
    with pytest.raises(UnwritableError, match="File name too long; choose a shorter name"):
        io.check_target(tmp_path / ("x" * 300))
