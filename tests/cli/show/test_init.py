"""Pages and worked examples: regard show."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from regard import cli, registry

EVERY = [(kind, name) for kind in registry.FOLDERS for name in registry.names(kind)]


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


@pytest.mark.parametrize(("kind", "name"), EVERY, ids=str)
def test_everything_that_is_listed_can_be_shown(kind, name):
    result = run("show", name, "--kind", kind)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{name} ({kind})\n")
    assert registry.summary(name, kind) in result.stdout


def test_a_kernel_is_found_by_its_name_and_a_stage_of_the_same_name_first():
    assert run("show", "sdpa").stdout.startswith("sdpa (kernels)\n")
    assert run("show", "additive").stdout.startswith("additive (score)\n")


def test_steps_are_shown_when_asked_for():
    assert "3. combine: weights @ value -> context" in run("show", "softmax", "--steps").stdout


def test_a_task_is_shown_with_every_setting_it_has():
    done = subprocess.run(
        [sys.executable, "-m", "regard", "show", "translate"], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert "train.max_minutes = -" in done.stdout
    assert "train.learning_rate = 0.003" in done.stdout
    told = "    search.mbr_from = beam   (beam, sample)\n        Source of these candidates: the best of a beam search, or samples."
    assert told in done.stdout
