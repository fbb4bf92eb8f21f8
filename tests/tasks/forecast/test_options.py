import ast
from pathlib import Path

from regard.registry import task_options
from regard.tasks.forecast import options


def test_the_options_are_a_literal_that_needs_no_import():
    [_, assignment] = ast.parse(Path(options.__file__).read_text()).body
    assert ast.literal_eval(assignment.value) == options.OPTIONS


def test_the_commands_take_them():
    commands = {option.name: option.commands for option in task_options() if option.name in options.OPTIONS}
    assert commands == {"plot": ("predict",), "explain": ("predict",), "levels": ("predict",), "backtest": ("evaluate",)}
