"""The command regard explain."""

import pytest
from typer.testing import CliRunner

from regard import cli


def run(*arguments):
    return CliRunner().invoke(cli.app, ["explain", *arguments])


def test_every_path_is_printed_with_its_estimate_or_its_reason():
    answer = run("--scope", "padding+causal", "--shape", "2,2,1,6,8", "--device", "cpu", "--training", "--statistics", "max")
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("estimates for ")
    assert lines[0].endswith("; -> runs")
    assert sum(line.startswith("->") for line in lines[1:]) == 1
    assert "   flash             needs a GPU, got cpu" in lines


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--shape", "2,2"], "--shape needs four or five whole numbers above 0, batch, heads, length and size of a head"),
        (["--dtype", "int8"], "--dtype needs one of float32, float16, bfloat16, float64, got 'int8'"),
        (["--device", "tpu"], "--device needs a device of this machine, cpu or cuda, got 'tpu'"),
        (["--score", "additiv"], "no score is called 'additiv'; did you mean 'additive'?"),
        (["--scope", "padding+causl"], "no scope is called 'causl'; did you mean 'causal'?"),
    ],
)
def test_what_cannot_be_explained_is_said(arguments, text):
    answer = run(*arguments)
    assert answer.exit_code == 2
    assert text in answer.stderr
