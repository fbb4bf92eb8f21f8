import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from regard import registry
from regard.cli import app
from regard.cli._task_options import files_of, with_task_options
from regard.errors import ConfigError
from regard.inference.forward_predictor import WRITING, ForwardPredictor
from regard.inference.sequence_predictor import SequencePredictor


class Model(ForwardPredictor):
    """Predictor that writes nothing."""

    def __init__(self):
        self.task = SimpleNamespace(name="classify")

    forward = decode = evaluate_examples = trace_parts = None


@pytest.mark.parametrize("name", WRITING)
def test_an_option_for_models_that_write_is_refused_for_one_that_does_not(name):
    with pytest.raises(
        ConfigError,
        match=rf"--{name.replace('_', '-')} is for models that write text, and this one \(classify\) writes none",
    ):
        Model().check_search_options({name: "given"}, [])


def test_settings_of_the_search_are_refused_but_for_how_many_are_answered_at_a_time():
    with pytest.raises(ConfigError, match=r"--search\.beam is for models that write text"):
        Model().check_search_options({}, ["search.batch_size=4", "search.beam=2"])
    Model().check_search_options({"beam": None, "stream": False}, ["search.batch_size=4"])


def test_a_model_that_writes_may_have_options_of_the_search():
    SequencePredictor.__new__(SequencePredictor).check_search_options({"beam": 4}, ["search.beam=2"])


@pytest.mark.parametrize("option", registry.task_options(), ids=lambda option: option.name)
def test_an_option_of_a_task_is_refused_by_models_of_others(option):
    with pytest.raises(ConfigError, match=rf"--{option.name} is for .*, and this one \(classify\) takes none; leave it out"):
        Model().set_options({option.name: "x"})


def test_a_command_has_the_options_that_tasks_declare_for_it():
    assert {option.name: option.commands for option in registry.task_options()} == {
        "backtest": ("evaluate",),
        "explain": ("predict",),
        "hotwords": ("predict", "evaluate"),
        "index": ("predict",),
        "levels": ("predict",),
        "plot": ("predict",),
        "question": ("predict", "view"),
        "samples": ("predict", "evaluate"),
        "threshold": ("predict",),
        "times": ("predict", "align"),
    }
    shown = {command: CliRunner().invoke(app, [command, "--help"]).output for command in ("predict", "view", "evaluate")}
    for option in registry.task_options():
        for command, text in shown.items():
            assert (f"--{option.name} " in text) is (command in option.commands)
            assert (" ".join(option.help.split()[:3]) in text) is (command in option.commands)


def test_options_in_use_are_passed_to_the_command_by_name():
    calls, own = [], typer.Typer()

    @own.command()
    @with_task_options("predict")
    def command(text: str, task_options=None):
        calls.append((text, dict(task_options)))

    assert CliRunner().invoke(own, ["a.png", "--question", "why?"]).exit_code == 0
    assert CliRunner().invoke(own, ["a.png"]).exit_code == 0
    assert calls == [("a.png", {"question": "why?"}), ("a.png", {})]
    assert files_of({"question": "why?", "index": "i.safetensors"}) == {"index": "i.safetensors"}


def test_help_with_options_of_tasks_imports_no_torch():
    code = "import sys; import regard.cli; from regard.registry import task_options; task_options(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
