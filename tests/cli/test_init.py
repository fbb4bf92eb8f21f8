"""The command line: what it prints, how it fails, and what it leaves alone."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import regard
from regard import cli
from regard.errors import MissingExtraError


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


def python(*arguments, **environment):
    return subprocess.run([sys.executable, *arguments], capture_output=True, env=os.environ | environment, timeout=60)


@pytest.mark.parametrize("arguments", [[], ["list"], ["show"], ["bench"]], ids=str)
def test_every_help_has_an_example(arguments):
    result = run(*arguments, "--help")
    assert result.exit_code == 0
    assert "Example:\n" in result.stdout
    assert " ".join(["regard", *arguments]) in result.stdout.partition("Example:\n")[2]


def test_the_version_is_the_package_s():
    assert re.fullmatch(rf"regard {re.escape(regard.__version__)}( \(commit [0-9a-f]+\))?\n", run("--version").stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["list", "score"], ["show", "--help"], ["bench"]], ids=str)
def test_what_needs_no_numbers_does_not_import_torch(arguments):
    code = f"import sys\nfrom regard.cli import app\napp({arguments}, standalone_mode=False)\nprint('torch' in sys.modules)"
    result = python("-c", code)
    assert result.stdout.decode().splitlines()[-1] == "False", result.stderr.decode()


def test_the_module_prints_utf8_without_colours_into_a_pipe():
    result = python("-m", "regard", "show", "causal", PYTHONIOENCODING="latin-1", FORCE_COLOR="1", COLUMNS="20")
    assert result.returncode == 0
    text = result.stdout.decode("utf-8")
    assert "    1 ■ ■ · · · · · ·\n" in text
    assert "Vaswani et al. 2017, section 3.2.3, https://arxiv.org/abs/1706.03762\n" in text
    assert "\x1b" not in text


def test_the_module_says_in_one_line_that_a_name_is_unknown():
    result = python("-m", "regard", "show", "aditive")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode() == "regard: no stage or mechanism is called 'aditive'; did you mean 'additive'?\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "colour"], "there is no kind 'colour'; the kinds are score, normalise, scope"),
        (["show", "dot", "--kind", "colour"], "there is no kind 'colour'; the kinds are score, normalise, scope"),
        (["show", "scaled-dot"], "no stage or mechanism is called 'scaled-dot'; did you mean 'scaled_dot'?"),
        (["show", "dot", "--kind", "scope"], "no scope is called 'dot'; there are blocks, causal"),
        (["show", "sdpa", "--steps"], "'sdpa' is a kernel, and its steps are those of what it covers"),
    ],
    ids=str,
)
def test_a_mistake_is_one_paragraph_and_exit_code_two(arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"regard: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "words"),
    [("abc", "a whole number, got 'abc'"), ("1.5", "a whole number, got '1.5'"), ("0", "1 or more, got '0'")],
)
def test_a_value_of_an_option_is_refused_in_the_words_of_settings(value, words):
    result = run("predict", "run", "Tom", "--beam", value)
    assert (result.exit_code, result.stderr) == (2, f"regard: --beam needs to be {words}\n")


@pytest.mark.parametrize("arguments", [["show"], ["list", "--colour"], ["paint"]], ids=str)
def test_a_command_line_that_cannot_be_read_is_exit_code_two(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback_and_keeps_the_exit_code():
    result = run("--debug", "show", "nothing_like_it")
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert "LookupError: no stage or mechanism is called 'nothing_like_it'" in result.stderr


@pytest.mark.parametrize("error", [KeyError("lost"), RuntimeError("lost\non two lines")], ids=repr)
def test_an_unexpected_failure_is_one_line_and_exit_code_one(monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("regard.cli.show.page.write_page", fail)
    result = run("show", "dot")
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.fullmatch(rf"regard: {type(error).__name__}: .*lost.* \(`regard --debug ...` shows where\)\n", result.stderr)


def test_a_reader_that_has_read_enough_ends_the_command_in_silence():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "regard", "list"], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_command_whose_message_cannot_be_written_still_ends_with_its_code():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "regard", "show", "nothing"], stderr=full, stdout=full, timeout=60)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            PermissionError(13, "Permission denied", "/x/y"),
            2,
            "/x/y cannot be used: Permission denied; give a path that can be",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "x"),
            2,
            "x cannot be used: No such file or directory; give a path",
        ),
        (OSError(28, "No space left on device"), 2, "cannot write to standard output: No space left on device; its end is"),
        (OSError(99, "Cannot assign requested address"), 1, "OSError: [Errno 99] Cannot assign requested address (`regard"),
        (OSError("strange"), 1, "OSError: strange (`regard --debug ...` shows where)"),
    ],
)
def test_an_error_of_the_system_that_nothing_translated_is_about_a_path_or_unexpected(
    monkeypatch, capsys, error, code, text
):
    monkeypatch.setattr(cli, "_close_stdout", lambda: None)
    assert cli._report(error) == code
    assert capsys.readouterr().err.startswith(f"regard: {text}")


def test_a_missing_extra_is_a_sentence_and_exit_code_two(capsys):
    assert cli._report(MissingExtraError('figures need matplotlib; install it with: pip install "regard[view]"')) == 2
    assert capsys.readouterr().err == 'regard: figures need matplotlib; install it with: pip install "regard[view]"\n'
