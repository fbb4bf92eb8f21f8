import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard import manifest
from regard.errors import FailedError, RefusedError
from regard.interop.engine_cache import cache_engine, is_valid, remove_least_recent
from regard.user_cache import cache_folder


@pytest.fixture(autouse=True)
def engines(tmp_path, monkeypatch):
    """The user's folder for engines, which is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder("engines")


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / manifest.NAME).write_bytes(b"first")
    return tmp_path / "run"


def test_it_is_made_once_and_again_when_the_model_changes(run):
    made = []

    def make():
        made.append(1)
        return {"model.bin": b"weights"}

    first = cache_engine(run, "kind", make)
    assert (first / "model.bin").read_bytes() == b"weights"
    assert cache_engine(run, "kind", make) == first
    assert len(made) == 1
    (run / manifest.NAME).write_bytes(b"second")
    second = cache_engine(run, "kind", make)
    assert second != first
    assert len(made) == 2
    assert [each.name for each in run.iterdir()] == [manifest.NAME]


def test_what_lies_in_the_run_directory_is_never_taken(run):
    home = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    shutil.copytree(home, run / "engines" / home.name)
    shutil.rmtree(home)
    assert (cache_engine(run, "kind", lambda: {"model.bin": b"others"}) / "model.bin").read_bytes() == b"others"


def test_an_export_that_has_a_manifest_of_its_own_is_made_once_too(run):
    made = []
    for _ in range(2):
        cache_engine(run, "kind", lambda: made.append(1) or {"model.bin": b"weights", manifest.NAME: b"its own"})
    assert made == [1]


def test_another_version_exports_again(run, monkeypatch):
    first = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    monkeypatch.setattr("regard.__version__", "later")
    assert cache_engine(run, "kind", lambda: {"model.bin": b"weights"}) != first


def test_an_engine_that_others_can_write_is_made_anew(run):
    home = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    home.chmod(0o777)
    assert not is_valid(home)
    assert cache_engine(run, "kind", lambda: {"model.bin": b"others"}) == home
    assert (home / "model.bin").read_bytes() == b"others"
    assert is_valid(home)


def test_beyond_the_limit_the_least_recently_used_go(run, engines):
    homes = []
    for number in range(4):
        (run / manifest.NAME).write_bytes(b"%d" % number)
        homes.append(cache_engine(run, "kind", lambda: {"model.bin": b"x" * 1000}))
        os.utime(homes[-1], (number, number))
    (run / manifest.NAME).write_bytes(b"0")
    assert cache_engine(run, "kind", dict) == homes[0]  # which now is the one used last
    size = sum(each.stat().st_size for each in homes[0].iterdir())
    remove_least_recent(engines, homes[3], 3 * size)
    assert set(engines.iterdir()) == {homes[0], homes[2], homes[3]}
    remove_least_recent(engines, homes[3], 1)
    assert list(engines.iterdir()) == [homes[3]]


def test_what_killed_programs_left_goes_after_a_day(run, engines):
    (engines / ".tmp-old").mkdir()
    (engines / ".tmp-new").mkdir()
    os.utime(engines / ".tmp-old", (1, 1))
    home = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    assert set(engines.iterdir()) == {home, engines / ".tmp-new"}


def test_what_was_damaged_is_made_anew(run):
    home = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    (home / "model.bin").write_bytes(b"weightz")
    assert not is_valid(home)
    assert cache_engine(run, "kind", lambda: {"model.bin": b"weights"}) == home
    assert is_valid(home)


def test_where_the_users_cache_cannot_be_used_engines_go_when_the_program_ends(run, engines):
    engines.chmod(0o777)
    program = "import sys; from pathlib import Path; from regard.interop.engine_cache import cache_engine\n"
    program += "print(cache_engine(Path(sys.argv[1]), 'kind', lambda: {'model.bin': b'weights'}))"
    home = subprocess.run([sys.executable, "-c", program, run], capture_output=True, text=True, check=True)
    assert "other users can write" in home.stderr
    assert "kind-" in home.stdout
    assert not Path(home.stdout.strip()).parent.exists()


def test_of_two_that_make_it_at_once_the_second_takes_the_first_ones(run, engines):
    def make():
        cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
        return {"model.bin": b"weights"}

    home = cache_engine(run, "kind", make)
    assert is_valid(home)
    assert list(engines.iterdir()) == [home]


def test_a_full_disk_is_told_and_leaves_nothing_half_written_and_what_was_there(run, engines, monkeypatch):
    before = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    (run / manifest.NAME).write_bytes(b"second")

    def full(path, data):
        if path.name == "late.bin":
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(FailedError, match=r"no room to write .*kind-.*: it needs [\d,]+ bytes and [\d,]+ are free"):
            cache_engine(run, "kind", lambda: {"model.bin": b"weights", "late.bin": b"more"})
    assert list(engines.iterdir()) == [before]
    assert is_valid(cache_engine(run, "kind", lambda: {"model.bin": b"weights"}))


def test_many_processes_at_once_find_it_whole(run, engines):
    """Each damages what it finds now and then, so that all of them replace it all the time."""
    program = """
import sys
from pathlib import Path
from regard.interop import engine_cache
for number in range(20):
    home = engine_cache.cache_engine(Path(sys.argv[1]), "kind", lambda: {"model.bin": b"weights", "other.bin": b"x" * 100_000})
    if number % 3 == int(sys.argv[2]):
        (home / "model.bin").unlink(missing_ok=True)
"""
    command = [sys.executable, "-c", program, str(run)]
    some = [subprocess.Popen([*command, str(each)], stderr=subprocess.PIPE, text=True) for each in range(3)]
    assert [process.communicate()[1] for process in some] == ["", "", ""]
    home = cache_engine(run, "kind", lambda: {"model.bin": b"weights"})
    assert is_valid(home)
    assert list(engines.iterdir()) == [home]


def test_an_exported_model_in_one_file_has_no_room_for_another_engine(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"")
    with pytest.raises(RefusedError, match=r"model\.zip is an exported model, which one engine alone runs: leave --engine"):
        cache_engine(tmp_path / "model.zip", "kind", dict)
