import errno
import subprocess
import sys
from pathlib import Path

import pytest

from regard.export.cache import FOLDER, kept, whole
from regard.training import manifest
from regard.training.errors import FailedError, RefusedError


@pytest.fixture
def run(tmp_path):
    (tmp_path / manifest.NAME).write_bytes(b"first")
    return tmp_path


def test_it_is_made_once_and_again_when_the_model_changes(run):
    made = []

    def make():
        made.append(1)
        return {"model.bin": b"weights"}

    first = kept(run, "kind", make)
    assert (first / "model.bin").read_bytes() == b"weights"
    assert kept(run, "kind", make) == first
    assert len(made) == 1
    (run / manifest.NAME).write_bytes(b"second")
    second = kept(run, "kind", make)
    assert second != first
    assert len(made) == 2
    assert [each.name for each in (run / FOLDER).iterdir()] == [second.name]


def test_what_was_damaged_is_made_anew(run):
    home = kept(run, "kind", lambda: {"model.bin": b"weights"})
    (home / "model.bin").write_bytes(b"weightz")
    assert not whole(home)
    assert kept(run, "kind", lambda: {"model.bin": b"weights"}) == home
    assert whole(home)


def test_a_run_that_cannot_be_written_to_is_served_from_elsewhere(run, monkeypatch):
    (run / FOLDER).write_text("a file in the way")
    home = kept(run, "kind", lambda: {"model.bin": b"weights"})
    assert run not in home.parents
    assert (home / "model.bin").read_bytes() == b"weights"


def test_what_lies_elsewhere_goes_when_the_program_ends(run):
    (run / FOLDER).write_text("a file in the way")
    program = "import sys; from pathlib import Path; from regard.export.cache import kept\n"
    program += "print(kept(Path(sys.argv[1]), 'kind', lambda: {'model.bin': b'weights'}))"
    home = subprocess.run([sys.executable, "-c", program, run], capture_output=True, text=True, check=True).stdout.strip()
    assert home
    assert not Path(home).parent.exists()


def test_of_two_that_make_it_at_once_the_second_takes_the_first_ones(run):
    def make():
        kept(run, "kind", lambda: {"model.bin": b"weights"})
        return {"model.bin": b"weights"}

    home = kept(run, "kind", make)
    assert whole(home)
    assert [each.name for each in (run / FOLDER).iterdir()] == [home.name]


def test_a_full_disk_is_told_and_leaves_nothing_half_written_and_what_was_there(run, monkeypatch):
    before = kept(run, "kind", lambda: {"model.bin": b"weights"})
    (run / manifest.NAME).write_bytes(b"second")

    def full(path, data):
        if path.name == "late.bin":
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(FailedError, match=r"no room to write .*kind-.*: it needs [\d,]+ bytes and [\d,]+ are free"):
            kept(run, "kind", lambda: {"model.bin": b"weights", "late.bin": b"more"})
    assert list((run / FOLDER).iterdir()) == [before]
    assert whole(kept(run, "kind", lambda: {"model.bin": b"weights"}))


def test_many_processes_at_once_find_it_whole(run):
    """Each damages what it finds now and then, so that all of them replace it all the time."""
    program = """
import sys
from pathlib import Path
from regard.export import cache
for number in range(20):
    home = cache.kept(Path(sys.argv[1]), "kind", lambda: {"model.bin": b"weights", "other.bin": b"x" * 100_000})
    if number % 3 == int(sys.argv[2]):
        (home / "model.bin").unlink(missing_ok=True)
"""
    command = [sys.executable, "-c", program, str(run)]
    some = [subprocess.Popen([*command, str(each)], stderr=subprocess.PIPE, text=True) for each in range(3)]
    assert [process.communicate()[1] for process in some] == ["", "", ""]
    home = kept(run, "kind", lambda: {"model.bin": b"weights"})
    assert whole(home)
    assert list((run / FOLDER).iterdir()) == [home]


def test_an_exported_model_in_one_file_has_no_room_for_another_engine(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"")
    with pytest.raises(RefusedError, match=r"model\.zip is an exported model, which one engine alone runs: leave --engine"):
        kept(tmp_path / "model.zip", "kind", dict)
