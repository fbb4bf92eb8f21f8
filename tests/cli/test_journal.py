import fcntl
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from regard.cli._journal import Chain, Journal, WrittenAnswer
from regard.cli._predict_io import AnswerWriter, write_to_file
from regard.cli._progress import ProgressLine
from regard.errors import DataError, RefusedError

from .killed import Constraints, Model

WORK = {"input": "a", "model": "b", "settings": "c"}


def begun(out: Path, work=WORK, notes: int = 1) -> None:
    """Two lines of a first window, and so many of the next, in a journal that is left."""
    with Journal(out, work) as journal:
        journal.note(1, WrittenAnswer("second\n"))
        journal.note(0, WrittenAnswer("first\n", strange=True))
        journal.commit_window()
        for place in range(notes):
            journal.note(place, WrittenAnswer(f"later {place}\n"))


def test_a_window_is_written_in_order_and_takes_its_name_when_all_is_done(tmp_path):
    out = tmp_path / "out.txt"
    with Journal(out, WORK) as journal:
        journal.note(1, WrittenAnswer("二\n"))
        journal.note(0, WrittenAnswer("一\n"))
        assert not out.exists()
        journal.commit_window()
        journal.finish()
    assert out.read_text(encoding="utf-8") == "一\n二\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]


def test_the_same_work_goes_on_where_it_was_left(tmp_path):
    begun(tmp_path / "out.txt")
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.head.lines == 2
        assert journal.answers_of_window == {0: WrittenAnswer("later 0\n")}
        assert (journal.head.strange, journal.head.first) == (1, 1)
        assert journal.message.endswith("out.txt.partial: going on after line 3")


@pytest.mark.parametrize("part", WORK)
def test_other_work_starts_over_and_says_so(tmp_path, part):
    begun(tmp_path / "out.txt")
    with Journal(tmp_path / "out.txt", {**WORK, part: "other"}) as journal:
        assert journal.message.endswith(f"was begun with another {part}: starting over")
        assert (journal.head.lines, journal.answers_of_window) == (0, {})
    assert (tmp_path / "out.txt.partial").read_bytes() == b""


def test_lines_that_can_be_read_once_are_never_gone_on_with(tmp_path):
    work = {**WORK, "input": None}
    begun(tmp_path / "out.txt", work)
    with Journal(tmp_path / "out.txt", work) as journal:
        assert journal.head.lines == 0
        assert "another input" in journal.message


def sealed(out: Path, change, *lines: object) -> None:
    """Change the head of a journal, whose lines are then these, and seal it anew."""
    path = out.with_name(f"{out.name}.partial.journal")
    head = json.loads(path.read_bytes().split(b"\n")[0].partition(b" ")[2])
    change(head)
    chain = Chain()
    path.write_bytes(b"".join(chain.seal(json.dumps(each).encode()) for each in (head, *lines)))


def test_a_journal_of_another_version_starts_over(tmp_path):
    begun(tmp_path / "out.txt")
    sealed(tmp_path / "out.txt", lambda head: head.update(format=3))
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.message.endswith("was begun with another version: starting over")


def test_a_journal_of_the_first_version_which_had_no_digests_starts_over(tmp_path):
    begun(tmp_path / "out.txt")
    head = {"lines": 2, "size": 13, "sha256": hashlib.sha256(b"first\nsecond\n").hexdigest(), "strange": 1, "first": 1}
    older = json.dumps({"format": 1, "work": WORK, "head": head}) + '\n[0, "later 0\\n", false]\n'
    (tmp_path / "out.txt.partial.journal").write_text(older)
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.message.endswith("was begun with another version: starting over")
        assert (journal.head.lines, journal.answers_of_window) == (0, {})


def test_a_line_that_was_changed_ends_the_reading_there_with_a_warning(tmp_path):
    begun(tmp_path / "out.txt", notes=3)
    path = tmp_path / "out.txt.partial.journal"
    path.write_bytes(path.read_bytes().replace(b"later 1", b"later 7"))
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.answers_of_window == {0: WrittenAnswer("later 0\n")}
        assert journal.message.endswith(
            "out.txt.partial.journal is damaged in its line 3: going on after line 3, and answering again what follows"
        )
    with Journal(tmp_path / "out.txt", WORK) as journal:  # it is whole again
        assert journal.message.endswith("going on after line 3")


def test_a_head_that_was_changed_starts_over_with_a_warning(tmp_path):
    begun(tmp_path / "out.txt")
    path = tmp_path / "out.txt.partial.journal"
    path.write_bytes(path.read_bytes().replace(b'"lines": 2', b'"lines": 1'))
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.message.endswith("out.txt.partial.journal is damaged in its line 1: starting over")
        assert (journal.head.lines, journal.answers_of_window) == (0, {})


def test_a_size_that_the_partial_file_does_not_have_is_never_given_to_it(tmp_path):
    begun(tmp_path / "out.txt")
    sealed(tmp_path / "out.txt", lambda head: head["head"].update(size=10**12))
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.message.endswith("is not what was written there: starting over")
        assert (tmp_path / "out.txt.partial").stat().st_size == 0


@pytest.mark.parametrize("line", [None, {}, [], ["0", "x", False], [-1, "x", False], [0, "x", 1], [0, "\ud800", False], [0]])
def test_a_line_that_is_no_answer_ends_the_reading_there(tmp_path, line):
    begun(tmp_path / "out.txt")
    sealed(tmp_path / "out.txt", lambda head: None, [3, "whole\n", False], line, [1, "later\n", False])
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.answers_of_window == {3: WrittenAnswer("whole\n")}
        assert "is damaged in its line 3" in journal.message


def test_a_place_that_was_answered_twice_ends_the_reading_there(tmp_path):
    begun(tmp_path / "out.txt")
    sealed(tmp_path / "out.txt", lambda head: None, [0, "one\n", False], [0, "two\n", False])
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.answers_of_window == {0: WrittenAnswer("one\n")}


@pytest.mark.parametrize("change", [None, {"lines": None}, {"lines": "2"}, {"size": -4}])
def test_a_journal_that_does_not_say_how_far_it_is_starts_over(tmp_path, change):
    begun(tmp_path / "out.txt")
    sealed(tmp_path / "out.txt", lambda table: table.update(head=None if change is None else table["head"] | change))
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.message.endswith("is not what was written there: starting over")
        assert journal.head.lines == 0


@pytest.mark.parametrize("change", [b"", b"first\n", b"First\nsecond\n"])
def test_answers_that_were_changed_are_not_gone_on_with(tmp_path, change):
    begun(tmp_path / "out.txt")
    (tmp_path / "out.txt.partial").write_bytes(change)
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.message.endswith("is not what was written there: starting over")
        assert journal.head.lines == 0


def test_wherever_the_journal_is_torn_what_stands_before_is_kept(tmp_path):
    begun(tmp_path / "out.txt", notes=5)
    whole = (tmp_path / "out.txt.partial.journal").read_bytes()
    head = whole.index(b"\n") + 1
    for size in range(head, len(whole) + 1):
        (tmp_path / "out.txt.partial.journal").write_bytes(whole[:size])
        with Journal(tmp_path / "out.txt", WORK) as journal:
            assert len(journal.answers_of_window) == whole[head:size].count(b"\n")
            assert journal.head.lines == 2


def test_what_was_being_written_behind_the_answers_is_cut_off(tmp_path):
    begun(tmp_path / "out.txt")
    with (tmp_path / "out.txt.partial").open("ab") as file:
        file.write(b"half a li")
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.head.lines == 2
    assert (tmp_path / "out.txt.partial").read_bytes() == b"first\nsecond\n"


def test_two_at_once_are_refused(tmp_path):
    with Journal(tmp_path / "out.txt", WORK), pytest.raises(RefusedError, match="is being written by another process: wait"):
        Journal(tmp_path / "out.txt", WORK).__enter__()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(DataError, match=r"--out cannot write .*partial: No such file or directory; choose another place"):
        Journal(tmp_path / "nowhere" / "out.txt", WORK).__enter__()


def test_a_name_that_is_no_files_is_refused_before_anything_is_answered(tmp_path):
    out = tmp_path / "folder"
    out.mkdir()
    with pytest.raises(DataError, match=r"--out needs the name of a file, and .*folder is something else"):
        Journal(out, WORK).__enter__()
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_where_nothing_could_be_answered_nothing_is_left(tmp_path):
    with pytest.raises(DataError, match="no file"), Journal(tmp_path / "out.txt", WORK):
        raise DataError("there is no file")
    assert not list(tmp_path.iterdir())


def test_what_another_process_finishes_meanwhile_keeps_its_name_and_its_answers(tmp_path, monkeypatch):
    out, partial, lock = tmp_path / "out.txt", tmp_path / "out.txt.partial", fcntl.flock
    partial.write_text("theirs\n")

    def finished(*given):
        if not out.exists():
            partial.replace(out)
        lock(*given)

    monkeypatch.setattr(fcntl, "flock", finished)
    with Journal(out, WORK) as journal:
        journal.note(0, WrittenAnswer("mine\n"))
        journal.commit_window()
    assert (out.read_text(), partial.read_text()) == ("theirs\n", "mine\n")


def killed(directory: Path, kills: int) -> dict:
    command = [sys.executable, Path(__file__).parent / "killed.py", directory, kills, random.randrange(10**6)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=100 + kills)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_at_any_instant_it_ends_with_what_an_undisturbed_run_writes(tmp_path):
    told = killed(tmp_path, 20)
    assert told["kills"] >= 20
    assert told["same"]
    assert told["left"] == []
    assert told["strange"] == [13, 14, 300]


@pytest.mark.soak
def test_killed_a_thousand_times_it_ends_with_what_an_undisturbed_run_writes(tmp_path):
    told = killed(tmp_path, 1000)
    assert told["same"]
    assert told["kills"] >= 1000


def half_written(out: Path) -> str:
    """Answer lines of which some are long; what stood in the way."""
    constraints = Constraints()
    texts = [f"line {number} 猫{'x' * (number * 37 % 23) ** 2}" for number in range(30)]
    try:
        with Journal(out, WORK) as journal:
            progress = ProgressLine(None, stream=io.StringIO())
            write_to_file(
                AnswerWriter(Model(), as_json=True), [(text, constraints) for text in texts], journal, 12, progress
            )
    except DataError as error:
        return str(error)
    return ""


@contextmanager
def full(folder: Path, size: int):
    """No file may be longer: what is written beyond has no room, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("step", [600, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
def test_wherever_the_disk_is_full_one_paragraph_says_so_and_it_goes_on_when_there_is_room(tmp_path, step):
    assert half_written(tmp_path / "calm.txt") == ""
    right = (tmp_path / "calm.txt").read_bytes()
    cases = 0
    for size in range(0, len(right), step):
        out = tmp_path / "out.txt"
        with full(tmp_path, size):
            said = half_written(out)
        assert re.match(
            r"--out cannot write .*out\.txt\.partial(\.journal)?: File too large\. The answers until then are in ", said
        )
        assert not out.exists()
        assert not list(tmp_path.glob(".tmp-*"))
        assert half_written(out) == ""
        assert out.read_bytes() == right
        assert sorted(each.name for each in tmp_path.iterdir()) == ["calm.txt", "out.txt"]
        out.unlink()
        cases += 1
    assert cases >= 20


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="only root may mount a small disk")
def test_on_a_disk_that_fills_up_it_goes_on_when_there_is_room(tmp_path):
    assert half_written(tmp_path / "calm.txt") == ""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        (disk / "other").write_bytes(bytes((256 - 12) << 10))
        assert "No space left on device. The answers until then are in" in half_written(disk / "out.txt")
        assert not (disk / "out.txt").exists()
        (disk / "other").unlink()
        assert half_written(disk / "out.txt") == ""
        assert (disk / "out.txt").read_bytes() == (tmp_path / "calm.txt").read_bytes()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert "--out cannot write" in half_written(disk / "out.txt")
        assert "Read-only file system; choose another place" in half_written(disk / "other.txt")
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be somebody else for a while")
@pytest.mark.parametrize(("mode", "name"), [(0o444, "out.txt"), (0o555, "out.txt.partial")])
def test_what_is_read_only_is_named_before_anything_is_answered(mode, name):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        out = Path(folder) / "out.txt"
        if mode == 0o444:
            out.write_text("theirs\n")
            out.chmod(mode)
        else:
            os.chmod(folder, mode)
        os.seteuid(65534)
        try:
            said = half_written(out)
        finally:
            os.seteuid(0)
        assert said == f"--out cannot write {out.with_name(name)}: Permission denied; choose another place"
        assert [each.name for each in Path(folder).iterdir()] == (["out.txt"] if mode == 0o444 else [])


@pytest.mark.parametrize("end", ["partial", "partial.journal"])
def test_what_lies_in_the_way_of_a_file_is_named_and_left_alone(tmp_path, end):
    victim = tmp_path / "victim"
    victim.write_text("theirs\n")
    for put in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to(victim), lambda path: path.symlink_to("/dev/full")):
        path = tmp_path / f"out.txt.{end}"
        put(path)
        assert half_written(tmp_path / "out.txt").startswith(f"--out cannot write {path}: ")
        assert not (tmp_path / "out.txt").exists()
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert victim.read_text() == "theirs\n"


def test_a_folder_that_is_removed_meanwhile_ends_in_one_paragraph(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Journal(folder / "out.txt", WORK) as journal:
        journal.note(0, WrittenAnswer("first\n"))
        shutil.rmtree(folder)
        with pytest.raises(DataError, match=r"--out cannot write .*out\.txt\.partial\.journal: No such file or directory"):
            journal.commit_window()
    assert not folder.exists()


def test_a_device_is_no_place_for_answers(tmp_path):
    assert (
        half_written(Path("/dev/full")) == "--out needs the name of a file, and /dev/full is something else; choose another"
    )
    assert not list(Path("/dev").glob("full.*"))
