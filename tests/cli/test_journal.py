import fcntl
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.journal import Journal, Written
from regard.data.lines import DataError
from regard.training.errors import RefusedError

WORK = {"input": "a", "model": "b", "settings": "c"}


def begun(out: Path, work=WORK, notes: int = 1) -> None:
    """Two lines of a first window, and so many of the next, in a journal that is left."""
    with Journal(out, work) as journal:
        journal.note(1, Written("second\n"))
        journal.note(0, Written("first\n", strange=True))
        journal.turn()
        for place in range(notes):
            journal.note(place, Written(f"later {place}\n"))


def test_a_window_is_written_in_order_and_takes_its_name_when_all_is_done(tmp_path):
    out = tmp_path / "out.txt"
    with Journal(out, WORK) as journal:
        journal.note(1, Written("二\n"))
        journal.note(0, Written("一\n"))
        assert not out.exists()
        journal.turn()
        journal.finish()
    assert out.read_text(encoding="utf-8") == "一\n二\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]


def test_the_same_work_goes_on_where_it_was_left(tmp_path):
    begun(tmp_path / "out.txt")
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.head.lines == 2
        assert journal.noted == {0: Written("later 0\n")}
        assert (journal.head.strange, journal.head.first) == (1, 1)
        assert journal.word.endswith("out.txt.partial: going on after line 3")


@pytest.mark.parametrize("part", WORK)
def test_other_work_starts_over_and_says_so(tmp_path, part):
    begun(tmp_path / "out.txt")
    with Journal(tmp_path / "out.txt", {**WORK, part: "other"}) as journal:
        assert journal.word.endswith(f"was begun with another {part}: starting over")
        assert (journal.head.lines, journal.noted) == (0, {})
    assert (tmp_path / "out.txt.partial").read_bytes() == b""


def test_lines_that_can_be_read_once_are_never_gone_on_with(tmp_path):
    work = {**WORK, "input": None}
    begun(tmp_path / "out.txt", work)
    with Journal(tmp_path / "out.txt", work) as journal:
        assert journal.head.lines == 0
        assert "another input" in journal.word


def test_a_journal_of_another_version_starts_over(tmp_path):
    begun(tmp_path / "out.txt")
    path = tmp_path / "out.txt.partial.journal"
    head = json.loads(path.read_text().splitlines()[0])
    path.write_text(json.dumps({**head, "format": 0}) + "\n")
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.word.endswith("was begun with another version: starting over")


@pytest.mark.parametrize("change", [None, {"lines": None}, {"lines": "2"}, {"size": -4}])
def test_a_journal_that_does_not_say_how_far_it_is_starts_over(tmp_path, change):
    begun(tmp_path / "out.txt")
    path = tmp_path / "out.txt.partial.journal"
    first, *rest = path.read_bytes().split(b"\n")
    table = json.loads(first)
    table["head"] = None if change is None else table["head"] | change
    path.write_bytes(b"\n".join([json.dumps(table).encode(), *rest]))
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.word.endswith("is not what was written there: starting over")
        assert journal.head.lines == 0


@pytest.mark.parametrize("change", [b"", b"first\n", b"First\nsecond\n"])
def test_answers_that_were_changed_are_not_gone_on_with(tmp_path, change):
    begun(tmp_path / "out.txt")
    (tmp_path / "out.txt.partial").write_bytes(change)
    with Journal(tmp_path / "out.txt", WORK) as journal:
        assert journal.word.endswith("is not what was written there: starting over")
        assert journal.head.lines == 0


def test_wherever_the_journal_is_torn_what_stands_before_is_kept(tmp_path):
    begun(tmp_path / "out.txt", notes=5)
    whole = (tmp_path / "out.txt.partial.journal").read_bytes()
    head = whole.index(b"\n") + 1
    for size in range(head, len(whole) + 1):
        (tmp_path / "out.txt.partial.journal").write_bytes(whole[:size])
        with Journal(tmp_path / "out.txt", WORK) as journal:
            assert len(journal.noted) == whole[head:size].count(b"\n")
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
        journal.note(0, Written("mine\n"))
        journal.turn()
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
    assert told["strange"] == [6, 50]


@pytest.mark.soak
def test_killed_a_thousand_times_it_ends_with_what_an_undisturbed_run_writes(tmp_path):
    told = killed(tmp_path, 1000)
    assert told["same"]
    assert told["kills"] >= 1000
