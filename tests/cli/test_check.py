"""The contracts of a class in a file of one's own: regard check."""

import pytest
from typer.testing import CliRunner

from regard import cli
from regard.components import open_component

pytestmark = pytest.mark.unhooked

FILE = '''
import torch
from regard.attention.scope import Scope

class L1:
    """Negative distance."""
    def prepare(self, key):
        return key
    def __call__(self, query, prepared):
        prepared = prepared.repeat_interleave(query.shape[1] // prepared.shape[1], 1)
        return -(query[..., :, None, :] - prepared[..., None, :, :]).abs().sum(-1)

class Unprepared:
    def __call__(self, query, prepared):
        return query @ prepared.mT

class Failing(L1):
    def __call__(self, query, prepared):
        raise ValueError("no\\nlines")

class Other:
    pass
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_scores.py"
    path.write_text(FILE)
    return path


def run(*arguments):
    return CliRunner().invoke(cli.app, ["check", *map(str, arguments)])


def test_every_contract_of_a_sound_score_is_a_line_that_passes(file):
    result = run(f"{file}:L1")
    assert result.exit_code == 0
    first, *lines, last = result.stdout.splitlines()
    assert first == f"{file}:L1, a score"
    assert all(line.startswith("  pass  ") for line in lines)
    assert len(lines) > 10
    assert last == "all contracts hold"


def test_a_score_without_prepare_fails_in_one_sentence(file):
    result = run(f"{file}:Unprepared")
    assert result.exit_code == 1
    assert "Unprepared has no prepare(key): the key's side of the score" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 failed"


def test_a_failure_has_its_reason_on_one_line_with_its_place(file):
    result = run(f"{file}:Failing", "--skip", "half_precision")
    assert result.exit_code == 1
    assert "ValueError: no; lines at my_scores.py:19 (with Failing-" in result.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("my_scores.py:L2", "there is no class L2 in it; it has L1, Unprepared, Failing, Other"),
        ("my_scores.py:Other", "Other is no score, normaliser, scope or mechanism"),
        ("others.py:L1", "others.py is missing"),
        ("my_scores.py", "names no class in a Python file; write it as my_scores.py:L1"),
        ("additive", "names no class in a Python file"),
    ],
)
def test_a_wrong_argument_is_exit_code_2(file, name, text):
    result = run(file.parent / name)
    assert result.exit_code == 2
    assert text in result.stderr


def test_a_kind_that_there_is_not_is_refused(file):
    result = run(f"{file}:Other", "--kind", "kernel")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--kind needs one of score, normaliser, scope, mechanism, got 'kernel'" in result.stderr


def test_the_kind_may_be_said(file):
    assert "Other has no prepare(key)" in run(f"{file}:Other", "--kind", "score").stdout


def test_a_reference_opens_its_class(file):
    assert open_component(f"{file}:L1").__name__ == "L1"
