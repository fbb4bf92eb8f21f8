import json

from rich.cells import cell_len

from regard.cli.evaluate import format_figures
from regard.metrics.text import Measurement

from .conftest import regard


def test_figures_come_with_intervals_and_signatures(run_directory, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("Tom chases Jerry\t汤姆追逐杰瑞\nMary likes Tom\t玛丽喜欢汤姆\n", encoding="utf-8")
    done = regard("evaluate", run_directory, f"--data.test={path}")
    assert done.returncode == 0, done.stderr
    assert "95 % [" in done.stdout
    assert "tok:zh" in done.stdout
    assert "0-10" in done.stdout
    assert "2 sentences" in done.stdout
    done = regard("evaluate", run_directory, f"--data.test={path}", "--json")
    assert {"bleu", "chrf", "exact", "bleu_by_length", "perplexity"} == set(json.loads(done.stdout))


def test_sources_that_are_too_long_are_answered_by_nothing_and_told(run_directory, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text(f"Tom chases Jerry\t汤姆追逐杰瑞\n{'Tom ' * 300}\t汤姆\n", encoding="utf-8")
    done = regard("evaluate", run_directory, f"--data.test={path}")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 sources have more than the 255 tokens that the model reads: their answers are empty" in done.stderr


def test_a_test_set_is_needed(run_directory):
    done = regard("evaluate", run_directory)
    assert done.returncode == 2
    assert "evaluate takes --data.test=FILE" in done.stderr
    assert "held out" not in done.stderr


def test_a_table_without_its_setting_is_answered_with_that():
    done = regard("evaluate", "run", "test.tsv")
    assert done.returncode == 2
    assert done.stderr == "regard: test.tsv is a file, and no setting; a table is named by --data.test=test.tsv\n"


def test_a_run_that_held_lines_out_says_so_and_where_their_figures_are(tmp_path):
    path, run = tmp_path / "pairs.tsv", tmp_path / "run"
    path.write_text("".join(f"{word}\t{word} {word}\n" for word in "abcdef"), encoding="utf-8")
    done = regard("train", "translate", f"--data.train={path}", "--train.max_steps=1", "--quiet", "--out", run)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"data.valid is not given: 1 of 6 lines of {path} is held out, by source\n"
    done = regard("evaluate", run)
    assert done.returncode == 2
    assert f"on the lines of {path} that were held out is in {run / 'metrics.json'}" in done.stderr
    done = regard("evaluate", run, f"--data.test={path}")
    assert done.returncode == 0, done.stderr
    assert f"{path} is what the run was trained on: how it does on new data, other lines have to say" in done.stderr


def test_figures_stand_below_each_other_under_wide_letters():
    found = Measurement(50.0, 40.0, 60.0, "ap")
    lines = format_figures({"map50": found, "ap 正方形": found, "ap 五角星的一种别的": found}).splitlines()
    assert [cell_len(line.partition(" 50.00")[0]) for line in lines] == [20, 20, 20]


def test_other_predictors_stand_in_a_table_above_what_the_metrics_are():
    figures = {
        "f1": Measurement(50.0, 50.0, 50.0, "F1 of the alarms"),
        "loss": Measurement(1.0, 0.5, 1.5, "nats"),
        "k_means.f1": Measurement(40.0, 40.0, 40.0, "F1 of the alarms"),
    }
    assert format_figures(figures).splitlines() == [
        "            f1",
        "model    50.00",
        "k_means  40.00",
        "",
        "f1           F1 of the alarms",
        "loss           1.00   95 % [0.50, 1.50]   nats",
    ]
