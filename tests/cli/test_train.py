import json
import re
from pathlib import Path

import pytest

from regard.cli.train import settings, split_config, summarise
from regard.errors import ConfigError

from .conftest import SMALL, regard


def test_a_run_directory_holds_what_it_should(run_directory):
    names = {path.name for path in run_directory.iterdir()}
    assert {
        "config.toml",
        "model.safetensors",
        "manifest.json",
        "metrics.json",
        "log.jsonl",
        "checkpoints",
        "codec.json",
    } <= names
    assert (run_directory / "config.toml").read_text(encoding="utf-8").startswith('task = "translate"\n')
    log = [json.loads(line) for line in (run_directory / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert any("attention" in line for line in log)


def test_a_run_goes_on_from_where_it_was(tmp_path):
    for steps in (3, 6):
        done = regard("train", "reverse", *SMALL, f"--train.max_steps={steps}", "--out", tmp_path / "run")
        assert done.returncode == 0, done.stderr
        assert f"all {steps} steps are done" in done.stdout
    assert f"resuming {tmp_path / 'run'} at step 3" in done.stderr


@pytest.mark.parametrize("option", ["--train.max_steps=5", "--train.max_steps 5"])
def test_without_a_task_the_run_is_resumed_with_its_own_settings(tmp_path, option):
    run = tmp_path / "run"
    assert regard("train", "reverse", *SMALL, "--train.max_steps=3", "--out", run).returncode == 0
    done = regard("train", *option.split(), "--out", run)
    assert done.returncode == 0, done.stderr
    assert "all 5 steps are done" in done.stdout
    assert f"resuming {run} at step 3" in done.stderr
    refused = regard("train", "--out", run, "--model.hidden_size=64")
    assert refused.returncode == 2
    assert "was started with model.hidden_size = 32, and now it is 64" in refused.stderr
    assert "records" not in refused.stderr


def test_the_arguments_of_a_command_line_are_told_from_its_settings():
    assert split_config("reverse", Path("c.toml"), ["--a=1"]) == ("reverse", Path("c.toml"), ["--a=1"])
    assert split_config("reverse", Path("--a"), ["1"]) == ("reverse", None, ["--a", "1"])
    assert split_config("--a", Path("1"), []) == (None, None, ["--a", "1"])
    assert split_config(None, None, []) == (None, None, [])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["translate"], "train needs a run directory: --out DIR"),
        ([], "train needs a task and a run directory: regard train TASK --out DIR; --out RUN resumes a run"),
        (["--out", "x"], "x has no config.toml, so there is no run to resume: name the task to begin one"),
        (["transalte", "--out", "x"], "no task is called 'transalte'; did you mean 'translate'?"),
        (
            ["translate", "--train.learning_rat=1", "--out", "x"],
            "there is no setting train.learning_rat; did you mean train.learning_rate?",
        ),
        (["translate", "--model.cell=gated", "--out", "x"], "model.cell needs to be tanh, lstm or gru, got 'gated'"),
        (["translate", "--model.attention=aditive", "--out", "x"], "did you mean 'additive'?"),
        (["translate", "--data.train=nowhere.tsv", "--data.valid=nowhere.tsv", "--out", "x"], "nowhere.tsv"),
        (["translate", "--data.train", "--out", "x"], "--data.train needs a value"),
        (["translate", "--model.norm=post", "--out", "x"], "model.norm=post would change nothing: it needs a transformer"),
        (
            ["reverse", "--train.schedule=noam", "--out", "x"],
            "train.schedule=noam needs train.warmup_steps of 1 or more, got 0",
        ),
        (
            ["reverse", "--train.scheduled_sampling_steps=5", "--out", "x"],
            "would change nothing: it needs scheduled sampling",
        ),
        (
            ["reverse", "--train.scheduled_sampling=linear", "--train.scheduled_sampling_max=1.5", "--out", "x"],
            "train.scheduled_sampling_max needs to be from 0 to 1, got 1.5",
        ),
        (["reverse", "--train.device=gpu", "--out", "x"], "train.device needs to be auto, cpu, cuda or cuda:1, got 'gpu'"),
        (["translate", "nowhere.toml", "--out", "x"], "nowhere.toml cannot be read"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_a_mistake_is_one_paragraph_and_nothing_is_left_behind(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    done = regard("train", *arguments)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "pairs.tsv"),
        (b"one column\n", "pairs.tsv:1"),
        (b"a\tb\n\nc\td\n", "pairs.tsv:2"),
        (b"a\tb\n\xff\xfe\tc\n", "pairs.tsv:2"),
        (b"a\tb\n" + b"x" * 1_100_000 + b"\ty\n", "pairs.tsv:2"),
    ],
    ids=["empty file", "one column", "empty line", "broken UTF-8", "a line of a megabyte"],
)
def test_bad_data_is_named_with_its_place(tmp_path, content, told):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    done = regard("train", "translate", f"--data.train={path}", f"--data.valid={path}", "--out", tmp_path / "run")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_mistake_that_shows_only_at_the_first_step_leaves_the_directory_free(tmp_path):
    small = [each for each in SMALL if "max_steps" not in each]
    first = regard("train", "reverse", *small, "--train.max_steps=2", "--train.schedule=noam", "--out", tmp_path / "run")
    assert first.returncode != 0
    second = regard(
        "train",
        "reverse",
        *small,
        "--train.max_steps=2",
        "--train.schedule=noam",
        "--train.warmup_steps=2",
        "--out",
        tmp_path / "run",
    )
    assert second.returncode == 0, second.stderr


def test_a_directory_that_is_no_run_is_left_as_it_was(tmp_path):
    (tmp_path / ".tmp-mine").mkdir()
    (tmp_path / "config.toml").write_text("1 = 2\n")
    done = regard("train", "reverse", *SMALL, "--out", tmp_path)
    assert done.returncode == 2
    assert "it is no run; choose another directory" in done.stderr
    assert (tmp_path / ".tmp-mine").exists()


def test_parts_that_do_not_go_together_are_the_users_to_mend(tmp_path):
    done = regard("train", "reverse", *SMALL, "--model.attention=additive+bilinear", "--out", tmp_path / "run")
    assert done.returncode == 2, done.stderr


@pytest.mark.parametrize(
    ("rate", "code", "told"),
    [
        ("1e5", 0, "perplexity not finite; it diverged: lower train.learning_rate or train.gradient_clip"),
        ("1e30", 2, "train.learning_rate is too large"),
    ],
)
def test_a_training_that_diverges_says_so_and_one_that_cannot_begin_names_the_setting(tmp_path, rate, code, told):
    settings = ["--model.hidden_size=8", "--data.samples=24", "--train.max_steps=4", f"--train.learning_rate={rate}"]
    done = regard("train", "reverse", *settings, "--out", tmp_path / "run")
    assert done.returncode == code, done.stderr
    assert told in (done.stderr if code else done.stdout)
    assert "Error" not in done.stderr


def test_a_summary_of_figures_that_are_none_at_all_is_a_line():
    metrics = {"ended": "all 8 steps are done", "step": 8, "valid": {"loss": None}}
    line = "run: all 8 steps are done; best at step 8: loss not finite; it diverged: lower train.learning_rate or train.gradient_clip"
    assert summarise(Path("run"), metrics) == line


def test_settings_are_read_in_both_spellings():
    assert settings(["--a.b=c=d", "--e.f", "g"]) == ["a.b=c=d", "e.f=g"]
    with pytest.raises(ConfigError, match=re.escape("'x' is no setting; settings look like --train.learning_rate=0.001")):
        settings(["x"])
    with pytest.raises(ConfigError, match=re.escape("--a.b needs a value: --a.b=VALUE")):
        settings(["--a.b"])


PACKED = [
    "--model.encoder=transformer",
    "--model.decoder=transformer",
    "--model.attention=transformer",
    "--train.packing_length=64",
]


def test_packed_rows_are_trained_on_and_a_run_goes_on_from_where_it_was(tmp_path):
    settings = [*SMALL, *PACKED, "--train.checkpoint_every=3", "--train.log_every=2", "--data.batch_tokens=256"]
    for name, stops in (("once", [6]), ("twice", [3, 6])):
        for steps in stops:
            done = regard("train", "translate", *settings, f"--train.max_steps={steps}", "--out", tmp_path / name)
            assert done.returncode == 0, done.stderr
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("once", "twice")]
    assert weights[0] == weights[1]
    assert "packing_length = 64" in (tmp_path / "once" / "config.toml").read_text(encoding="utf-8")
    log = [json.loads(line) for line in (tmp_path / "once" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert any("decoder.0.cross" in line.get("attention", {}) for line in log), "attentions are looked at, an example a row"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "train.packing_length=64 would change nothing: it needs a transformer encoder and a transformer decoder"),
        (
            [*PACKED, "--train.coverage_weight=1"],
            "and train.coverage_weight=1.0 takes a row for one; leave one of the two out",
        ),
        ([*PACKED, "--model.attention=coverage"], "the attention decoder.0.cross: it carries a state from query to query"),
        ([*PACKED, "--train.packing_length=4"], "rows of 4 places do not hold the longest example, which has"),
    ],
    ids=str,
)
def test_what_cannot_be_packed_is_told_before_anything_is_trained(tmp_path, arguments, told):
    done = regard(
        "train", "translate", "--train.packing_length=64", *arguments, "--data.samples=60", "--out", tmp_path / "run"
    )
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_settings_that_are_none_are_quoted_short():
    with pytest.raises(ConfigError, match=rf"^'{'x' * 80}'\.\.\. is no setting; settings look like"):
        settings(["x" * 9999])
    with pytest.raises(ConfigError, match=rf"^--{'x' * 80}\.\.\. needs a value: --{'x' * 80}\.\.\.=VALUE"):
        settings(["--" + "x" * 9999])


def test_a_table_in_the_place_of_the_toml_file_is_answered_with_its_setting():
    done = regard("train", "translate", "train.tsv", "--out", "run")
    assert done.returncode == 2
    told = "train.tsv is no TOML file of settings; a table to train on is named by --data.train=train.tsv"
    assert done.stderr == f"regard: {told}\n"


def test_other_predictors_stand_in_a_table_below_the_figures():
    valid = {"loss": 0.5, "f1": 50.0, "k_means.f1": 40.0}
    text = summarise(Path("run"), {"valid": valid, "ended": "all 2 steps are done", "step": 2})
    assert text.splitlines() == [
        "run: all 2 steps are done; best at step 2: loss 0.5",
        "            f1",
        "model    50.00",
        "k_means  40.00",
    ]
