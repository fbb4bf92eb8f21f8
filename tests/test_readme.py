"""The README runs, prints what it says, and says the same in both languages."""

import importlib.util
import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]


def blocks(name: str) -> list[tuple[str, str]]:
    """(language, code) of every fenced block."""
    return re.findall(r"```(\w+)\n(.*?)```", (TOP / name).read_text(encoding="utf-8"), re.DOTALL)


def without_comments(code: str) -> list[str]:
    return [re.sub(r"\s*#.*$", "", line) for line in code.splitlines()]


@pytest.mark.parametrize("name", READMES)
def test_the_code_prints_what_the_readme_says(name):
    names: dict[str, object] = {}
    found = blocks(name)
    programs = [place for place, (language, _) in enumerate(found) if language == "python"]
    assert programs
    for place in programs:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(found[place][1], names)
        language, expected = found[place + 1]
        assert language == "text"
        assert printed.getvalue() == expected


def test_both_languages_show_the_same_code():
    english, chinese = ([(language, without_comments(code)) for language, code in blocks(name)] for name in READMES)
    assert english == chinese


def test_every_command_of_the_readme_exists():
    from regard.cli import app

    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    commands = [
        shlex.split(line, comments=True)
        for language, code in blocks("README.md")
        if language == "bash"
        for line in code.splitlines()
    ]
    assert {command[0] for command in commands} == {"make", "regard", "echo"}
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    for command in commands:
        if "regard" in command:
            assert command[command.index("regard") + 1] in known, command
        if command[0] == "make":
            assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), command


def test_the_picture_is_drawn_from_the_real_stages():
    spec = importlib.util.spec_from_file_location("normalisers", TOP / "docs" / "normalisers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (TOP / "docs" / "normalisers.svg").read_text(encoding="utf-8") == module.picture()


def test_every_local_link_leads_somewhere():
    for name in READMES:
        links = re.findall(r"\]\(([^)#:]+)\)", (TOP / name).read_text(encoding="utf-8"))
        assert links
        for link in links:
            assert (TOP / link).exists(), f"{name} links to {link}"
