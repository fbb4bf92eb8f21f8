import json
import shutil

import pytest

from regard import manifest
from regard.compare import sweep as sweeping
from regard.compare.figures import save_figures
from regard.compare.plan import Planned
from regard.compare.sweep import Sweep
from regard.errors import RefusedError, UnwritableError
from regard.tasks.reverse import Config

FIGURES = {"valid": {"exact": {"value": 50.0, "low": 40.0, "high": 60.0}}, "seconds": 61.0, "parameters": 7}


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A sweep of three, one of which cannot be built, whose trainings end as `endings` says."""

    def made(**endings):
        def run_jobs(jobs, at_once, display, ended):
            for job in jobs:
                if endings.get(job.name) is None:
                    train(tmp_path / "cmp" / f"{job.name.split(',')[0]}-0")
                ended(job, endings.get(job.name))

        monkeypatch.setattr(sweeping, "run_jobs", run_jobs)
        planned = [Planned(("a",), 0, Config()), Planned(("b",), 0, Config()), Planned(("c",), 0, Config(), "7 heads")]
        return Sweep("reverse", ("x",), planned, tmp_path / "cmp", seeds=1)

    return made


def train(directory):
    directory.mkdir(exist_ok=True)
    (directory / manifest.NAME).write_bytes(manifest.seal({"files": {"model.safetensors": "abc"}, "pending": {}}))
    save_figures(directory, Config(), None, FIGURES)


def states(sweep):
    return [(each.state, each.reason) for each in sweep.outcomes.values()]


def test_what_trains_has_figures_and_what_cannot_has_its_reason(sweep, tmp_path, capsys):
    made = sweep()
    assert states(made) == [("waiting", None), ("waiting", None), ("impossible", "7 heads")]
    table = made.run(quiet=False)
    assert states(made) == [("done", None), ("done", None), ("impossible", "7 heads")]
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] a, seed 0: exact 50.0, 1:01 of training",
        "[2/2] b, seed 0: exact 50.0, 1:01 of training",
    ]
    out = tmp_path / "cmp"
    assert (out / "compare.md").read_text(encoding="utf-8") == table + "\n"
    assert json.loads((out / "compare.json").read_text())["runs"][0]["figures"] == FIGURES
    assert (out / "compare.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert made.failed() == []


def test_what_is_trained_is_not_trained_again(sweep):
    sweep().run(quiet=True)
    again = sweep(**{"a, seed 0": "it was trained again", "b, seed 0": "it was trained again"})
    assert [each.state for each in again.outcomes.values()] == ["done", "done", "impossible"]
    again.run(quiet=True)
    assert again.failed() == []


def test_one_that_fails_is_told_and_tried_again_next_time(sweep, capsys):
    made = sweep(**{"a, seed 0": "no room"})
    made.run(quiet=False)
    assert states(made)[:2] == [("failed", "no room"), ("done", None)]
    assert [each.folder for each in made.failed()] == ["a-0"]
    assert "[1/2] a, seed 0: failed: no room" in capsys.readouterr().err
    assert states(sweep())[:2] == [("waiting", None), ("done", None)]


def test_figures_that_do_not_belong_to_what_was_asked_are_no_figures(sweep, monkeypatch):
    made = sweep()
    monkeypatch.setattr(sweeping, "run_jobs", lambda jobs, at_once, display, ended: ended(jobs[0], None))
    made.run(quiet=True)
    assert states(made)[0] == ("failed", "its data or its model changed while it was measured; start again")


def test_a_request_holds_all_that_a_child_needs(sweep, tmp_path):
    made = sweep()
    job = made.job(made.planned["a-0"])
    assert job.name == "a, seed 0"
    assert (job.request["task"], job.request["directory"], job.request["beam"]) == (
        "reverse",
        str(tmp_path / "cmp" / "a-0"),
        None,
    )
    assert json.loads(json.dumps(job.request))["config"]["model"]["hidden_size"] == 128


def test_a_directory_that_cannot_be_made_is_refused(sweep, tmp_path):
    (tmp_path / "cmp").write_text("a file", encoding="utf-8")
    with pytest.raises(RefusedError, match=r"cannot write to .*cmp: File exists; choose a directory that can be written"):
        sweep().run(quiet=True)


def test_a_directory_deleted_while_trainings_go_on_ends_in_one_paragraph_and_is_not_made_again(sweep, tmp_path, monkeypatch):
    made = sweep()

    def run_jobs(jobs, at_once, display, ended):
        shutil.rmtree(tmp_path / "cmp")
        ended(jobs[0], "no room")

    monkeypatch.setattr(sweeping, "run_jobs", run_jobs)
    with pytest.raises(UnwritableError, match=r"cannot write .*compare.md: No such file or directory; make its directory"):
        made.run(quiet=True)
    assert not (tmp_path / "cmp").exists()


def test_what_a_kill_left_half_written_is_swept_and_what_is_somebody_elses_is_not(sweep, tmp_path):
    (tmp_path / "cmp").mkdir()
    for name in (".tmp-0123456789abcdef", ".tmp-mine"):
        (tmp_path / "cmp" / name).write_text("half")
    sweep().run(quiet=True)
    assert [path.name for path in (tmp_path / "cmp").glob(".tmp-*")] == [".tmp-mine"]
