import json
import math

from regard.cli.compare import Run, tabulate

from .conftest import regard


def test_the_table_has_a_row_for_each_value_with_the_spread_over_seeds():
    runs = [Run("none", 0, {"bleu": 10.0}), Run("none", 1, {"bleu": 12.0}), Run("additive", 0, {"bleu": 30.0})]
    lines = tabulate("model.attention", runs).splitlines()
    assert lines[0].split("|")[1:3] == [" model.attention ", " bleu     "]
    assert "11 ± 1.4" in lines[2]
    assert "30.0" in lines[3]


def test_a_figure_that_a_run_lacks_is_not_a_number():
    table = tabulate("x", [Run("a", 0, {"bleu": 1.0}), Run("b", 0, {})])
    assert str(math.nan) in table.splitlines()[3]


def test_two_mechanisms_are_trained_and_set_side_by_side(tmp_path):
    arguments = ["--model.size=16", "--data.samples=120", "--train.max_steps=3", "--quiet", "--out", tmp_path / "cmp"]
    done = regard("compare", "reverse", "--vary", "model.attention=none,additive", *arguments)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cmp" / "compare.md").read_text(encoding="utf-8").strip() == done.stdout.strip()
    assert [run["value"] for run in json.loads((tmp_path / "cmp" / "compare.json").read_text())] == ["none", "additive"]


def test_what_to_vary_has_to_be_said(tmp_path):
    done = regard("compare", "reverse", "--out", tmp_path)
    assert done.returncode == 2
    assert "compare needs --vary SETTING=VALUE,VALUE" in done.stderr


def test_the_seed_is_not_for_the_user_to_vary(tmp_path):
    done = regard("compare", "reverse", "--vary", "train.seed=1,2", "--out", tmp_path)
    assert done.returncode == 2
    assert "compare sets train.seed itself: --seeds N" in done.stderr


def test_a_value_that_does_not_exist_is_refused_before_anything_is_trained(tmp_path):
    done = regard("compare", "reverse", "--vary", "model.attention=none,aditive", "--out", tmp_path / "cmp")
    assert done.returncode == 2
    assert "did you mean 'additive'?" in done.stderr
    assert not (tmp_path / "cmp").exists()
