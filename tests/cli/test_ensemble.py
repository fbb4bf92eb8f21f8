import shutil

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.inference.load import load

from .conftest import regard


def run(*arguments):
    return CliRunner().invoke(app, ["ensemble", *map(str, arguments)])


def test_runs_become_one_that_every_command_takes(run_directory, tmp_path):
    table, out = tmp_path / "dev.tsv", tmp_path / "all"
    table.write_text("Tom chases Jerry\t汤姆追逐杰瑞\nMary likes Tom\t玛丽喜欢汤姆\n", encoding="utf-8")
    done = run(run_directory, run_directory, "--stack", table, "--data.target=2", "--out", out)
    assert done.exit_code == 0, done.stderr
    first, *members, learned = done.stdout.splitlines()
    assert first == f"{out}: 2 models, averaged by their probabilities"
    assert members == [f"    0.5000  {run_directory}"] * 2
    assert learned.startswith("loss a token ")
    both = regard("predict", out, "Tom chases Jerry", "--align")
    assert both.returncode == 0, both.stderr
    [alone] = load(run_directory).predict(["Tom chases Jerry"])
    answer, _, heading, *_ = both.stdout.splitlines()
    assert answer == alone.text
    assert heading.split() == ["Tom", "chases", "Jerry", "<eos>"]
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["view", str(out), "Tom chases Jerry", "--html", str(page)])
    assert shown.exit_code == 0, shown.stderr
    assert "1.decoder.cross" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "ensemble needs a new run directory: --out DIR"),
        (["--weights", "1,x", "--out", "OUT"], "--weights needs numbers with commas between them, such as 2,1,1, got '1,x'"),
        (["--weights", "1,2,3", "--out", "OUT"], "an ensemble of 2 members needs as many weights, got 3"),
        (["--weights", "1,2", "--stack", "x", "--out", "OUT"], "--weights gives the weights and --stack learns them"),
        (["--data.train=x", "--out", "OUT"], "ensemble has no setting data.train; it takes --data.source and"),
        (["--average", "mean", "--out", "OUT"], "average needs to be one of probabilities, logits, memories, got 'mean'"),
        (
            ["--average", "memories", "--stack", "TABLE", "--out", "OUT"],
            "stacking is for averages of probabilities or logits",
        ),
    ],
)
def test_what_cannot_be_made_is_told_and_nothing_is_written(run_directory, tmp_path, arguments, text):
    (tmp_path / "dev.tsv").write_text("Tom\t汤姆\n", encoding="utf-8")
    places = {"OUT": tmp_path / "all", "TABLE": tmp_path / "dev.tsv"}
    result = run(run_directory, run_directory, *(places.get(each, each) for each in arguments))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"regard: {text}")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "all").exists()


def test_one_run_alone_is_no_ensemble(run_directory, tmp_path):
    result = run(run_directory, "--out", tmp_path / "all")
    assert (result.exit_code, result.stderr[:48]) == (2, "regard: an ensemble needs two members or more, g")


def test_a_directory_that_is_no_run_is_told(run_directory, tmp_path):
    shutil.copytree(run_directory, tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    result = run(run_directory, tmp_path / "run", "--out", tmp_path / "all")
    assert result.exit_code == 2
    assert "is no trained model: it has no manifest.json" in result.stderr


def test_help_has_an_example():
    result = run("--help")
    assert "regard ensemble run/1 run/2 run/3 --out all/" in result.stdout.partition("Example:")[2]
