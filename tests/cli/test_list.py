"""Names and summaries of everything: regard list."""

import re

from typer.testing import CliRunner

from regard import cli, registry


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


def test_list_has_everything_under_its_kind():
    blocks = dict(block.split("\n", 1) for block in run("list").stdout.rstrip().split("\n\n"))
    assert list(blocks) == list(registry.FOLDERS)
    for kind, block in blocks.items():
        assert [line.split()[0] for line in block.splitlines()] == registry.names(kind)


def test_list_aligns_what_each_is_for():
    lines = run("list", "normalise").stdout.splitlines()
    assert lines[0] == f"entmax      {registry.summary('entmax', 'normalise')}"
    assert len({re.match(r"\S+ +", line).end() for line in lines}) == 1


def test_installed_components_are_listed_with_their_package(monkeypatch):
    from importlib.metadata import EntryPoint

    from regard.cli import list_

    entry = EntryPoint("manhattan", "own_package:L1", "regard.score")
    monkeypatch.setattr(list_, "list_entry_points", lambda: {"manhattan": entry})
    assert "manhattan" in [line.split()[0] for line in run("list", "score").stdout.splitlines()]
    assert "Installed." in run("list", "score").stdout
    assert "manhattan" not in run("list", "scope").stdout


def test_list_wraps_to_the_width_of_a_terminal_and_not_in_a_pipe(monkeypatch):
    assert max(map(len, run("list").stdout.splitlines())) > 60
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("list", "score").stdout.splitlines()
    assert max(map(len, lines)) <= 60
    column = lines[0].index(registry.summary("additive", "score")[:8])
    assert [line[:column].strip() for line in lines if line[:column].strip()] == registry.names("score")
