"""Benchmarks of the checkout: regard bench."""

import ast
import difflib
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard import registry
from regard.cli import Command, app
from regard.cli.list_ import align_columns


@app.command(
    cls=Command,
    short_help="Run a benchmark of the checkout.",
    context_settings={"allow_interspersed_args": False},
)
def bench(
    name: Annotated[
        str | None, typer.Argument(help="A script in benchmarks/; without it they are listed.", metavar="NAME")
    ] = None,
    options: Annotated[list[str] | None, typer.Argument(help="Passed on to the script.", metavar="OPTIONS")] = None,
) -> None:
    """Run a benchmark of the checkout, or list them. What follows NAME goes to the script.

    \b
    Example:
        regard bench
        regard bench attention --help
    """
    scripts = benchmarks()
    if name is None:
        typer.echo(align_columns([(name, _first_line(path)) for name, path in scripts.items()]))
        return
    if name not in scripts:
        near = difflib.get_close_matches(name, scripts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(scripts)}"
        raise LookupError(f"no benchmark is called {name!r}; {hint}")
    code = subprocess.run([sys.executable, str(scripts[name]), *(options or [])]).returncode
    raise typer.Exit(code if code >= 0 else 128 - code)


def benchmarks() -> dict[str, Path]:
    """The scripts that can be run, by name: those of the current folder, else those of the checkout that holds this file."""
    folders = Path("benchmarks"), registry.PACKAGE.parent.parent / "benchmarks"
    for folder in folders:
        scripts = {path.stem: path for path in sorted(folder.glob("[!_]*.py"))}
        if scripts:
            return scripts
    raise LookupError("there are no benchmarks here: run this in a checkout of regard, which has them in benchmarks/")


def _first_line(script: Path) -> str:
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
