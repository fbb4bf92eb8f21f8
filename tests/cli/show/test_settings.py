"""Settings of a task: selected by words, and wrapped to the width of the terminal."""

import pytest
from typer.testing import CliRunner

from regard import cli, registry, tasks
from regard.cli.show.settings import write_settings
from regard.config import everything
from regard.errors import ConfigError


def names(text):
    return [line.split(" = ")[0] for line in text.splitlines() if not line.startswith(" ")]


def test_a_part_of_a_name_or_of_a_description_selects_settings():
    assert write_settings("translate", ["learning_rate"]).splitlines()[0] == "train.learning_rate = 0.003"
    assert names(write_settings("translate", ["early stopping"])) == ["train.patience"]
    assert names(write_settings("translate", ["early", "STOPPING"])) == ["train.patience"]
    by_name = [path for path in everything(tasks.find("translate").Config) if "beam" in path]
    assert names(write_settings("translate", ["beam"]))[: len(by_name)] == by_name


def test_the_name_of_another_toolkit_selects_the_setting_that_is_meant():
    assert names(write_settings("translate", ["lr"]))[0] == "train.learning_rate"


def test_words_that_no_setting_has_are_answered_with_the_nearest():
    with pytest.raises(
        ConfigError, match=r"no setting of the task translate has 'learnin_rates' .* did you mean train\.learning_rate"
    ):
        write_settings("translate", ["learnin_rates"])
    with pytest.raises(
        ConfigError, match="has 'zzz zz' in its name or its description; regard show translate lists all of them"
    ):
        write_settings("translate", ["zzz", "zz"])


@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("task", registry.names("tasks"))
def test_the_settings_of_a_task_fit_the_terminal(task, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = write_settings(task).splitlines()
    assert [line for line in lines if len(line) > width and " " in line.strip()] == []
    assert all(path in "\n".join(lines) for path in everything(tasks.find(task).Config))


def test_the_command_filters_and_refuses_words_after_what_has_no_settings():
    run = CliRunner()
    assert run.invoke(cli.app, ["show", "translate", "learning_rate"]).stdout.startswith("train.learning_rate = 0.003\n")
    refused = run.invoke(cli.app, ["show", "additive", "heads"])
    assert refused.exit_code == 2
    assert "only a task has settings that words select, and additive is one of score; leave out 'heads'" in refused.stderr
