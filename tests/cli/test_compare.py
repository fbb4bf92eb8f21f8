import json
import os
import signal
import threading
import time

import pytest
from typer.testing import CliRunner

from regard import config as configuration
from regard.cli import app
from regard.compare import sweep as sweeping
from regard.compare.progress import Lines
from regard.compare.workers import Job, run_jobs
from regard.errors import Interrupted
from regard.tasks.reverse import Config

from .conftest import regard

here = pytest.mark.unhooked
"""The hook knows a context of typer's from one of click's, which is what a command is called with."""
TINY = ["model.hidden_size=16", "data.samples=120", "train.log_every=1"]


def compare(*arguments):
    """The command in this process; its children are processes all the same."""
    return CliRunner().invoke(app, ["compare", "reverse", *map(str, arguments), *(f"--{each}" for each in TINY)])


@here
def test_what_can_be_built_is_trained_and_measured_and_the_rest_has_its_reason(tmp_path):
    (tmp_path / "test.tsv").write_text("abc\tcba\nab\tba\n", encoding="utf-8")
    out, test = tmp_path / "比较", tmp_path / "test.tsv"
    goes = ["--with", "model.decoder=recurrent: model.cell=gru", "--with", "model.decoder=transformer: model.heads=3"]
    more = ["--vary", "model.attention=none", "--vary", "model.decoder=recurrent,transformer", "--jobs", "2", "--beam", "2"]
    done = compare(*more, *goes, f"--data.test={test}", "--train.max_steps=3", "--out", out)
    assert done.exit_code == 0, done.output
    assert (out / "compare.md").read_text(encoding="utf-8") == done.stdout
    found = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    assert [run["state"] for run in found["runs"]] == ["done", "impossible"]
    figures = found["runs"][0]["figures"]
    assert figures["test"]["exact"].keys() == figures["valid"]["exact"].keys() == {"value", "low", "high", "signature"}
    assert figures["valid"]["loss"]["value"] > 0
    assert figures["parameters"] > 0
    assert figures["tokens_per_second"] > 0
    assert 'cell = "gru"' in (out / "none,recurrent-0" / "config.toml").read_text(encoding="utf-8")
    assert "got size 16 and 3 heads" in (out / "compare.html").read_text(encoding="utf-8")
    assert "[1/1] none · recurrent, seed 0: test exact" in done.stderr


def test_a_training_that_is_stopped_leaves_a_checkpoint_to_go_on_from(tmp_path):
    config = configuration.plain(configuration.read(Config, overrides=[*TINY, "train.max_steps=1000000"]))
    log = tmp_path / "run" / "log.jsonl"

    over = threading.Event()

    def stop():
        end = time.monotonic() + 90
        while time.monotonic() < end and not (log.exists() and b'"loss"' in log.read_bytes()):
            if over.wait(0.05):  # the training failed, and nobody expects a signal any more
                return
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    request = {"task": "reverse", "config": config, "components": [], "directory": str(log.parent), "beam": None}
    try:
        with pytest.raises(Interrupted) as raised:
            run_jobs([Job("a", request)], 1, Lines(1, None), lambda job, reason: pytest.fail(f"it ended: {reason}"))
    finally:
        over.set()
        thread.join()
    assert raised.value.code == 143
    assert list((log.parent / "checkpoints").glob("[0-9]*"))


@here
def test_one_that_failed_makes_the_command_fail_when_all_are_done(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "run_jobs", lambda jobs, at_once, shown, ended: [ended(job, "no room") for job in jobs])
    done = compare("--vary", "model.layers=1,2", "--out", tmp_path / "cmp")
    assert done.exit_code == 1
    assert "- 2, seed 0 failed: no room" in done.stdout


@here
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--vary", "model.attention=none,aditive", "--out", "{}"], "did you mean 'additive'?"),
        (["--vary", "model.layers=1,2"], "compare needs a directory for its runs: --out DIR"),
        (["--vary", "model.layers=1,2", "--train.seed=3", "--out", "{}"], "compare sets train.seed itself: --seeds N"),
        (["--vary", "model.layers=1,2", "--with", "model.layers=3: model.hidden_size=8", "--out", "{}"], "it takes 1, 2"),
    ],
)
def test_a_mistake_is_told_before_anything_is_trained(tmp_path, arguments, told):
    done = compare(*(each.format(tmp_path / "cmp") for each in arguments))
    assert done.exit_code == 2, done.output
    assert told in done.stderr
    assert not (tmp_path / "cmp").exists()


def test_what_to_vary_has_to_be_said(tmp_path):
    done = regard("compare", "reverse", "--out", tmp_path)
    assert done.returncode == 2
    assert "compare needs --vary SETTING=VALUE,VALUE" in done.stderr


def test_the_child_is_no_command_for_people():
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "compare " in shown
    assert "compare-one" not in shown


@here
def test_a_comparison_that_is_stopped_says_what_is_kept(tmp_path, monkeypatch):
    def stop(*_):
        raise Interrupted(130)

    monkeypatch.setattr(sweeping, "run_jobs", stop)
    ended = compare("--vary", "model.attention=none,dot", "--out", tmp_path / "cmp")
    assert ended.exit_code == 130
    assert (
        f"stopped: 0 of 2 trainings are done and kept in {tmp_path / 'cmp'}, those under way have saved a checkpoint; the same "
        "command goes on from there"
    ) in ended.output
