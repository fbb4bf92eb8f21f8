"""Commands of the documentation: every `regard ...` line in a code block is parsed, and its settings exist for its task."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from regard import config as configuration
from regard import registry
from regard.cli import app
from regard.cli._search_options import PART, split_arguments
from regard.cli.train import read_config, settings
from regard.config import Search

TOP = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(TOP).as_posix() for path in (*TOP.glob("*.md"), *TOP.glob("docs/*.md")))
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands
USAGE_ERROR = typer.BadParameter.__base__


def commands(text: str) -> list[str]:
    """Command lines in fenced and indented blocks, with continuation lines joined."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [line.strip() for line in joined.splitlines() if re.match(r"\s*regard [a-z]", line)]


ALL = [(name, line) for name in PAGES for line in commands((TOP / name).read_text(encoding="utf-8"))]


def parse(line: str) -> typer.Context:
    """Parse a command line without running it; a variable of the shell counts as 1."""
    name, *arguments = shlex.split(re.sub(r"\$\w+", "1", line), comments=True)[1:]
    assert name in COMMANDS, f"regard has no command {name}"
    context: typer.Context = COMMANDS[name].make_context(name, arguments)
    return context


def options(context: typer.Context) -> list[str]:
    """Arguments that are settings; the first may be in the place of a TOML file, an input or a run."""
    return [each for value in (*context.params.values(), context.args) for each in flatten(value) if each.startswith("--")]


def flatten(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from flatten(each)
    elif value is not None and not isinstance(value, bool | int | float):
        yield str(value)


def check_settings(context: typer.Context) -> None:
    """Raise for settings that do not exist, or that have values of another type."""
    match context.info_name:
        case "train":
            read_config(context.params["task"], None, options(context))
        case "compare":
            varied = [
                f"--{each.split(',')[0]}" for each in context.params["vary"] if not re.search(r"=(every|mechanisms)\b", each)
            ]
            read_config(context.params["task"], None, [*options(context), *varied])
        case "predict" | "evaluate":
            search = [each for each in settings(options(context)) if each.startswith(PART)]
            configuration.read(Search, overrides=[each.removeprefix(PART) for each in search])
            split_arguments(None, [f"--{each}" for each in search], "predict")
        case "show":
            assert context.params["name"] in {name for kind in registry.FOLDERS for name in registry.names(kind)}
        case _:
            return


@pytest.mark.parametrize(("page", "line"), ALL, ids=[f"{page}-{number}" for number, (page, _) in enumerate(ALL)])
def test_a_command_is_parsed_and_its_settings_exist(page, line):
    check_settings(parse(line))


def test_every_guide_with_commands_is_read():
    assert len(ALL) > 120
    assert {"README.md", "README.zh-CN.md", "docs/export.md", "docs/pictures.md", "docs/viewer.md"} <= {
        page for page, _ in ALL
    }


@pytest.mark.parametrize(
    "line",
    [
        "regard trian translate --out run/",
        "regard export run/ --format onnx",
        "regard train translate --model.atention=luong --out run/",
        'regard predict run/ "Tom" --search.beams=4',
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line):
    with pytest.raises((AssertionError, USAGE_ERROR, ValueError, LookupError)):
        check_settings(parse(line))
