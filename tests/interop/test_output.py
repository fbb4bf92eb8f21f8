import pytest

from regard.errors import RefusedError, UnwritableError
from regard.interop.output import check_free, write_directory, write_file


def test_files_are_put_where_nothing_is(tmp_path):
    assert write_directory(tmp_path / "out", {"a": b"12", "b": b"345"}) == 5
    assert (tmp_path / "out" / "b").read_bytes() == b"345"


def test_a_file_is_put_where_nothing_is(tmp_path):
    assert write_file(tmp_path / "out.zip", b"12345") == 5
    assert (tmp_path / "out.zip").read_bytes() == b"12345"


def test_nothing_is_overwritten(tmp_path):
    write_directory(tmp_path / "out", {"a": b"12"})
    with pytest.raises(RefusedError, match="out is there already and is not empty: choose another name"):
        check_free(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="file is there already"):
        write_directory(tmp_path / "file", {"a": b""})
    with pytest.raises(RefusedError, match="file is there already"):
        write_file(tmp_path / "file", b"")


def test_a_missing_parent_is_named(tmp_path):
    with pytest.raises(UnwritableError, match=r"cannot write .*out: there is no directory .*nowhere; make it first"):
        check_free(tmp_path / "nowhere" / "out")


def test_what_cannot_be_written_is_told(tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(UnwritableError, match=r"cannot write .*out: Permission denied; choose a place that can be"):
        write_directory(tmp_path / "out", {"a": b""})
    with pytest.raises(UnwritableError, match=r"cannot write .*out.zip: Permission denied; choose a place that can be"):
        write_file(tmp_path / "out.zip", b"")
    assert not list(tmp_path.iterdir())


def test_a_link_in_the_way_is_not_taken_for_a_free_place(tmp_path):
    (tmp_path / "out").symlink_to("nothing")
    with pytest.raises(RefusedError, match="out is there already"):
        write_directory(tmp_path / "out", {"a": b""})
