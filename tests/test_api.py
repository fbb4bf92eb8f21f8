"""Training from Python: the defaults, the checks and the run directory of the command."""

from dataclasses import replace
from pathlib import Path

import pytest

import regard
from regard import tasks
from regard.api import read_config, read_run_config
from regard.config import Dropout, Model, Train
from regard.errors import ConfigError, DataError, RefusedError
from regard.tasks import experiment

pytestmark = pytest.mark.filterwarnings("ignore:.*is missing or not what was written")
SMALL = {"data": {"samples": 60}, "model": {"hidden_size": 8}, "train": {"max_steps": 4, "evaluate_every": 2}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return regard.train("reverse", **SMALL, out=tmp_path_factory.mktemp("api") / "run", quiet=True)


def test_a_training_answers_its_directory_and_its_metrics(run):
    assert (run.directory / "model.safetensors").exists()
    assert set(run.metrics["valid"]) == {"loss", "perplexity"}
    assert run.metrics["ended"] == "all 4 steps are done"
    assert run.load("cpu").predict("a b").text is not None


def test_what_is_not_named_has_the_task_s_default(run):
    config = run.load("cpu").config
    default = tasks.find("reverse").Config()
    assert config.train == replace(default.train, max_steps=4, evaluate_every=2)
    assert config.data.batch_tokens == default.data.batch_tokens


@pytest.mark.parametrize(
    "settings",
    [
        {"train": {"max_steps": 7}, "model": {"attention": "dot"}},
        {"train": Train(max_steps=7), "model": Model(attention="dot")},
        {"config": {"train": {"max_steps": 9}, "model": {"attention": "dot"}}, "train": {"max_steps": 7}},
        {"config": tasks.find("reverse").Config(train=Train(max_steps=7)), "model": {"attention": {"name": "dot"}}},
    ],
    ids=["tables", "sections", "a table of sections", "a config"],
)
def test_settings_come_as_tables_sections_or_a_config(settings, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("regard.api.train_config", lambda task, config, out, quiet: seen.append((task, config, out)) or {})
    regard.train("reverse", out=str(tmp_path), **settings)
    assert seen == [("reverse", read_config("reverse", overrides=["train.max_steps=7", "model.attention=dot"]), tmp_path)]


def test_a_toml_file_comes_before_what_is_named(tmp_path):
    (tmp_path / "c.toml").write_text('task = "reverse"\n[train]\nmax_steps = 9\nseed = 3\n')
    config = read_config("reverse", tmp_path / "c.toml", {"train": {"max_steps": 7}})
    assert (config.train.max_steps, config.train.seed) == (7, 3)
    with pytest.raises(ConfigError, match=r"c\.toml is for the task 'reverse', not for 'translate'"):
        read_config("translate", tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"train": {"learning_rate": "abc"}}, "train.learning_rate needs to be a number, got 'abc'"),
        ({"train": {"learning_rat": 0.1}}, r"no setting train\.learning_rat; did you mean train\.learning_rate\?"),
        ({"model": {"attention": "aditive"}}, "did you mean 'additive'"),
        ({"config": {"trian": {}}}, "no setting trian; did you mean train"),
        ({"config": 3}, "config needs to be a TOML file, a table or a Config of the task 'reverse', got int"),
        ({"config": tasks.find("caption").Config()}, "a Config of the task 'reverse', got Config"),
        ({"model": {"norm": "post"}}, r"model\.norm=post would change nothing"),
        ({"train": {"schedule": "noam"}}, "needs train.warmup_steps of 1 or more"),
        ({"learning_rate": "abc"}, r"no setting learning_rate; did you mean train\.learning_rate\?"),
        ({"train": Dropout()}, "train needs to be a Train, got Dropout"),
        ({"model": {"attention": 3}}, "model.attention needs to be a name, or a table of settings with one, got 3"),
        (
            {"model": {"attention": "my_scores.py"}},
            "model.attention needs a class of the file my_scores.py: model.attention=my_s",
        ),
        ({"components": "nowhere.py"}, "nowhere.py is missing; give the Python file that holds the component"),
        ({"data": {"lr": 3}}, r"did you mean train\.learning_rate\?"),
    ],
    ids=str,
)
def test_a_mistake_is_refused_before_data_is_read(settings, text, tmp_path):
    data = {"train": Path("nowhere.tsv")} | settings.pop("data", {})
    with pytest.raises((ConfigError, LookupError), match=text):
        regard.train("reverse", data=data, out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.unhooked  # the check of types would raise first
def test_a_value_of_another_type_in_a_dataclass_is_refused_too(tmp_path):
    with pytest.raises(ConfigError, match=r"train\.learning_rate needs to be a number, got 'abc'"):
        regard.train("reverse", train=Train(learning_rate="abc"), out=tmp_path / "run")
    with pytest.raises(ConfigError, match="train needs to be a table of settings, got int"):
        regard.train("reverse", train=3, out=tmp_path / "run")
    with pytest.raises(
        ConfigError, match="a component is handed over as a class, a Python file or the name of an installed one, got int"
    ):
        regard.train("reverse", components=3, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_may_be_a_path(tmp_path):
    with pytest.raises(DataError, match=r"there is no file nowhere\.tsv"):
        regard.train("reverse", data={"train": Path("nowhere.tsv")}, out=tmp_path / "run")


def test_an_unknown_task_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(LookupError, match="no task is called 'revers'; did you mean 'reverse'"):
        regard.train("revers", out=tmp_path)


def test_without_a_task_the_run_is_resumed(run, capsys):
    resumed = regard.train(out=run.directory, train={"max_steps": 6})
    assert resumed.metrics["ended"] == "all 6 steps are done"
    assert f"resuming {run.directory} at step" in capsys.readouterr().err
    assert read_run_config(run.directory)[1].train.max_steps == 6


def test_what_may_not_change_is_refused_before_data_is_read(run, monkeypatch):
    monkeypatch.setattr("regard.tasks.experiment", lambda *_: pytest.fail("data was read"))
    with pytest.raises(RefusedError, match=r"was started with train\.learning_rate = 0\.003, and now it is 0\.1"):
        regard.train(out=run.directory, train={"learning_rate": 0.1})
    with pytest.raises(RefusedError, match="is a run of the task 'reverse', not of 'translate'"):
        regard.train("translate", out=run.directory)


def test_none_in_a_run_is_not_the_task_s_default_when_it_is_resumed(tmp_path):
    config = tasks.find("classify").Config(model=type(tasks.find("classify").Config().model)(depth=None))
    (tmp_path / "config.toml").write_text(f'task = "classify"\n{regard.config.write(config)}')
    (tmp_path / "manifest.json").write_text("{}")
    assert read_run_config(tmp_path) == ("classify", config)


def test_a_directory_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(ConfigError, match=r"has no config\.toml, so there is no run to resume: name the task"):
        regard.train(out=tmp_path)
    with pytest.raises(ConfigError, match="a config needs its task"):
        regard.train(config={}, out=tmp_path)
    (tmp_path / "config.toml").write_text('task = "reverse"\n[train]\nlr = 3\n')
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"config\.toml: there is no setting train\.lr; did you mean train\.learning_rate"):
        regard.train(out=tmp_path)


def test_a_run_that_another_begins_with_names_the_file_with_its_settings(run, tmp_path):
    settings = SMALL | {"model": {"hidden_size": 16}, "train": {"init_from": str(run.directory)}}
    text = r"model\.hidden_size is 8 there and 16 here\. Begin with its settings: regard train reverse .*config\.toml --train\.init_from="
    with pytest.raises(RefusedError, match=text):
        regard.train("reverse", **settings, out=tmp_path / "run")
    config = read_config("reverse", run.directory / "config.toml", {"train": {"init_from": str(run.directory)}})
    assert experiment("reverse", config)[0].model is not None
