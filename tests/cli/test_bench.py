"""Benchmarks of the checkout: regard bench."""

import pytest
from typer.testing import CliRunner

from regard import cli, registry


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with two benchmarks, and nothing else to find any in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "PACKAGE", tmp_path / "src" / "regard")
    (tmp_path / "benchmarks").mkdir()
    report = "import pathlib, sys\npathlib.Path('given.txt').write_text(repr(sys.argv[1:]))\nsys.exit(7)\n"
    (tmp_path / "benchmarks" / "counting.py").write_text(
        f'"""How fast is counting.\n\nMore.\n"""\n{report}', encoding="utf-8"
    )
    (tmp_path / "benchmarks" / "empty.py").write_text('"""Nothing at all."""\n', encoding="utf-8")
    return tmp_path


def test_bench_lists_the_scripts_with_what_they_measure(checkout):
    assert run("bench").stdout == "counting  How fast is counting.\nempty     Nothing at all.\n"


def test_bench_passes_options_on_and_the_exit_code_back(checkout):
    assert run("bench", "counting", "--size", "3", "--help").exit_code == 7
    assert (checkout / "given.txt").read_text() == "['--size', '3', '--help']"


def test_bench_ends_well_when_its_script_does(checkout):
    assert run("bench", "empty").exit_code == 0


def test_bench_finds_the_scripts_of_the_checkout_from_anywhere(checkout, monkeypatch):
    (checkout / "elsewhere").mkdir()
    monkeypatch.chdir(checkout / "elsewhere")
    assert "counting" in run("bench").stdout


def test_bench_names_the_nearest_script(checkout):
    result = run("bench", "counting2")
    assert (result.exit_code, result.stderr) == (2, "regard: no benchmark is called 'counting2'; did you mean 'counting'?\n")


def test_bench_says_where_benchmarks_are_when_there_are_none(checkout, monkeypatch):
    (checkout / "src").mkdir()
    monkeypatch.chdir(checkout / "src")
    monkeypatch.setattr(registry, "PACKAGE", checkout / "src" / "a" / "b")
    result = run("bench", "counting")
    assert result.exit_code == 2
    assert result.stderr.startswith("regard: there are no benchmarks here: run this in a checkout of regard")
