"""The READMEs: code and commands run in the order in which they stand, print the output shown, and are equal in both languages."""

import importlib.util
import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]
BUILD = ("make ", ". .venv/")
"""Beginnings of the commands that build and activate the environment, which the tests already run in."""
SHORTER = {
    "regard compare ": " --train.max_steps=4",
    "regard train classify ": " --train.max_steps=2 --data.samples=100",
    "regard train forecast ": " --train.max_steps=2 --data.samples=1",
}
"""Settings that the test appends to commands of the page, whose output is not shown, so that it takes less time."""


def blocks(name: str) -> list[tuple[str, str]]:
    """(language, code) of every fenced block."""
    return re.findall(r"```(\w+)\n(.*?)```", (TOP / name).read_text(encoding="utf-8"), re.DOTALL)


def without_comments(code: str) -> list[str]:
    return [re.sub(r"\s*#.*$", "", line) for line in code.splitlines()]


SLOW = "luong.zip"
"""Commands with this file, the export to ONNX and its use, run in `make soak` alone; tests/interop exports in every run."""


def shorten(command: str) -> str:
    """The command with the settings of SHORTER; of a repeated setting the last counts."""
    return command + next((more for start, more in SHORTER.items() if command.startswith(start)), "")


def run_python(code: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


@pytest.mark.parametrize("name", READMES)
def test_python_code_prints_the_output_shown(name):
    names: dict[str, object] = {}
    page = blocks(name)
    programs = [place for place, (language, code) in enumerate(page) if language == "python" and "runs/" not in code]
    assert len(programs) > 3
    for place in programs:
        language, expected = page[place + 1]
        assert language == "text"
        assert run_python(page[place][1], names) == expected


def install_command(folder: Path) -> dict[str, str]:
    """Environment whose PATH has a command `regard` that runs these sources."""
    folder.mkdir()
    command = folder / "regard"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m regard "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    path = os.pathsep.join(filter(None, [str(TOP / "src"), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}


@pytest.mark.unhooked
@pytest.mark.timeout(900)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_page_runs_from_top_to_bottom_in_an_empty_directory(whole, tmp_path, monkeypatch):
    environment = install_command(tmp_path / "bin")
    page = tmp_path / "page"
    page.mkdir()
    monkeypatch.chdir(page)
    names: dict[str, object] = {}
    output = ""
    for language, code in blocks(READMES[0]):
        if language == "python":
            output = run_python(code, names)
        elif language == "bash":
            lines = [line for line in code.splitlines() if not line.startswith(BUILD) and (whole or SLOW not in line)]
            commands = "\n".join(lines if whole else map(shorten, lines))
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", commands],
                env=environment,
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
            output = done.stdout if commands else ""
        elif output:
            assert code.splitlines()[0] in output
    written = {"answers.txt", "bird.attn.safetensors", "bird.html", "bird.svg", "runs"} | ({SLOW} if whole else set())
    assert written <= {path.name for path in page.iterdir()}


def test_the_shortened_commands_are_on_the_page():
    lines = [line for language, code in blocks(READMES[0]) if language == "bash" for line in code.splitlines()]
    for start in SHORTER:
        assert any(line.startswith(start) for line in lines), f"{start} is no longer on the page"
    assert any(SLOW in line for line in lines)


def test_both_languages_show_the_same_code():
    english, chinese = ([(language, without_comments(code)) for language, code in blocks(name)] for name in READMES)
    assert english == chinese


def test_build_commands_are_those_of_the_makefile():
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    lines = [line for language, code in blocks("README.md") if language == "bash" for line in without_comments(code)]
    build = [line.split() for line in lines if line.startswith(BUILD)]
    assert len(build) > 1
    for command in build:
        if command[0] == "make":
            assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), command
        else:
            assert f"BIN := {Path(command[1]).parent}\n" in makefile


@pytest.mark.parametrize("name", READMES)
def test_commands_and_options_in_the_prose_exist(name):
    from regard.cli import app

    prose = re.sub(r"```.*?```", "", (TOP / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    commands = {command.name or command.callback.__name__: command.callback for command in app.registered_commands}
    spans = [span.split() for span in re.findall(r"`([^`]+)`", prose)]
    assert {words[1] for words in spans if words[0] == "regard" and words[1:]} <= {name.strip("_") for name in commands}
    parameters = {parameter.strip("_") for callback in commands.values() for parameter in callback.__annotations__}
    options = {word[2:] for words in spans for word in words if re.fullmatch(r"--[a-z]+", word)}
    assert len(options) > 5
    assert options <= parameters


def test_settings_in_the_prose_are_listed_by_regard_show():
    page = "".join(
        subprocess.run(
            [sys.executable, "-m", "regard", "show", task], capture_output=True, text=True, encoding="utf-8"
        ).stdout
        for task in ("translate", "forecast")
    )
    for name in READMES:
        settings = re.findall(r"--([a-z]+\.[a-z_]+)", (TOP / name).read_text(encoding="utf-8"))
        assert len(settings) > 5
        assert [setting for setting in settings if setting not in page] == []


def test_the_picture_is_drawn_from_the_real_stages():
    spec = importlib.util.spec_from_file_location("normalisers", TOP / "docs" / "normalisers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (TOP / "docs" / "normalisers.svg").read_text(encoding="utf-8") == module.picture()


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a Markdown page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


PAGES = sorted(path.relative_to(TOP).as_posix() for path in (*TOP.glob("*.md"), *TOP.glob("docs/*.md")))


@pytest.mark.parametrize("name", PAGES)
def test_every_local_link_leads_to_a_file_and_its_heading(name):
    page = TOP / name
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^):]+)\)", text):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{name} links to {link}"
