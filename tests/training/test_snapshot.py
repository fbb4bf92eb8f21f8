from importlib.resources.abc import Traversable

import pytest

from regard import manifest
from regard.errors import DamagedError, RefusedError
from regard.training.run_directory import RunDirectory
from regard.training.snapshot import MemoryFolder, files_in, read_snapshot, retry_on_publish, verify


@pytest.fixture
def run(tmp_path):
    with RunDirectory(tmp_path / "run") as run:
        run.publish({"a.json": b"{}", "in/b.json": b"[]", "model.safetensors": b"weights"})
        yield run


def sealed(run):
    return (run.path / manifest.NAME).read_bytes()


def test_files_are_read_once_and_may_change_afterwards(run):
    snapshot = read_snapshot(run.path, sealed(run), omit=("model.safetensors",))
    run.publish({"a.json": b"other"})
    assert snapshot.files == {"a.json": b"{}", "in/b.json": b"[]"}
    assert snapshot.names == {"a.json", "in/b.json", "model.safetensors"}
    assert snapshot.digests("model.safetensors") == (manifest.digest(b"weights"),)


def test_a_folder_in_memory_is_read_as_one_on_a_disk(run):
    folder = read_snapshot(run.path, sealed(run)).folder
    assert isinstance(folder, Traversable)
    assert (folder / "a.json").read_text(encoding="utf-8") == "{}"
    assert folder.joinpath("in", "b.json").read_bytes() == b"[]"
    assert str(folder / "in" / "b.json") == str(run.path / "in" / "b.json")
    assert (folder / "in" / "b.json").name == "b.json"
    assert folder.name == "run"
    assert sorted(each.name for each in folder.iterdir()) == ["a.json", "in", "model.safetensors"]
    assert (folder / "in").is_dir()
    assert not (folder / "c").is_file()
    with (folder / "a.json").open("rb") as data, (folder / "a.json").open() as text:
        assert (data.read(), text.read()) == (b"{}", "{}")
    with pytest.raises(DamagedError, match=r"run/c\.json is missing: no manifest names it$"):
        (folder / "c.json").read_text()
    assert MemoryFolder(run.path, {}) / "x" == MemoryFolder(run.path, {}, "x")


def test_a_publish_between_the_manifest_and_its_files_is_no_damage(run):
    begun = []

    def read(data):
        if len(begun) < 3:
            begun.append(data)
            run.publish({"a.json": f"{len(begun)}".encode()})
        return read_snapshot(run.path, data).files["a.json"]

    assert retry_on_publish(run.path, read) == b"3"


def test_damage_is_told_at_once_and_publishing_for_ever_after_a_while(run):
    (run.path / "a.json").write_bytes(b"x")
    times = []

    def read(data):
        times.append(data)
        return read_snapshot(run.path, data)

    with pytest.raises(DamagedError, match=r"a\.json is not what was written: its SHA-256 differs"):
        retry_on_publish(run.path, read)
    assert len(times) == 1

    def refuse(data):
        run.note("count", len(times))
        times.append(data)
        raise RefusedError("never")

    with pytest.raises(RefusedError, match="never"):
        retry_on_publish(run.path, refuse)
    assert len(times) == 12


def test_a_change_that_is_under_way_is_whole_at_every_instant(run):
    table = {"files": {"a.json": manifest.digest(b"{}")}, "pending": {"a.json": manifest.digest(b"new")}}
    (run.path / manifest.NAME).write_bytes(manifest.seal(table))
    assert verify(run.path) == {"a.json": b"{}"}
    (run.path / "a.json").write_bytes(b"new")
    assert verify(run.path) == {"a.json": b"new"}


def test_a_link_out_of_the_directory_is_not_followed(run, tmp_path):
    (tmp_path / "secret").write_bytes(b"{}")
    (run.path / "a.json").unlink()
    (run.path / "a.json").symlink_to(tmp_path / "secret")
    with pytest.raises(DamagedError, match=r"a\.json is a link that leads out of"):
        verify(run.path)
    (tmp_path / "link").symlink_to(run.path)
    (run.path / "a.json").unlink()
    (run.path / "a.json").write_bytes(b"{}")
    assert verify(tmp_path / "link")["a.json"] == b"{}"


def test_small_files_are_bounded_all_together(run, monkeypatch):
    monkeypatch.setattr("regard.training.snapshot.SMALL", 3)
    with pytest.raises(DamagedError, match=r"b\.json has 2 bytes, and at most 1 are read of it"):
        verify(run.path)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"../x": ""}, r"its manifest names '\.\./x', which lies outside"),
        ({"/x": ""}, "its manifest names '/x', which lies outside"),
        ({"x": 3}, "its manifest has no table of files"),
        ([], "its manifest has no table of files"),
        ({str(number): "" for number in range(1001)}, "its manifest names 1,001 files, and a model has at most 1,000"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_manifest_that_no_run_has_is_damaged(tmp_path, files, text):
    with pytest.raises(DamagedError, match=text):
        files_in({"files": files, "pending": {}}, tmp_path)
