"""What there is, what each thing does, and how fast it is: list, show, bench."""

import ast
import difflib
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard import registry
from regard.cli import Command, app

KINDS = f"One of {', '.join(registry.FOLDERS)}."


@app.command("list", cls=Command, short_help="What there is, one line each.")
def list_(kind: Annotated[str | None, typer.Argument(help=KINDS, metavar="KIND")] = None) -> None:
    """What there is, one line each: all of it, or one kind.

    \b
    Example:
        regard list
        regard list score
    """
    typer.echo(listing(kind))


@app.command(cls=Command, short_help="Formula, paper, drawing, cost and kernels of one thing.")
def show(
    name: Annotated[str, typer.Argument(help="A name from `regard list`.", metavar="NAME")],
    steps: Annotated[bool, typer.Option("--steps", help="The three stages with numbers on a small example.")] = False,
    kind: Annotated[str | None, typer.Option(help=f"Where several kinds share the name. {KINDS}", metavar="KIND")] = None,
) -> None:
    """Formula, paper, drawing, cost and kernels of one thing; or its stages with numbers.

    \b
    Example:
        regard show causal
        regard show additive --steps
        regard show additive --kind kernels
    """
    kind = _locate(name, kind)  # a mistake is answered before torch is waited for
    from regard.cli import show as text

    typer.echo(text.steps(name, kind) if steps else text.page(name, kind))


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
        typer.echo(_aligned([(each, _first_line(path)) for each, path in scripts.items()]))
        return
    if name not in scripts:
        near = difflib.get_close_matches(name, scripts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(scripts)}"
        raise LookupError(f"no benchmark is called {name!r}; {hint}")
    code = subprocess.run([sys.executable, str(scripts[name]), *(options or [])]).returncode
    raise typer.Exit(code if code >= 0 else 128 - code)


def listing(kind: str | None = None) -> str:
    """The names of one kind, or of each under its heading, with what they are for. Reads the files, imports none."""
    kinds = [kind] if kind else list(registry.FOLDERS)
    rows = {each: [(name, registry.summary(name, each)) for name in registry.names(each)] for each in kinds}
    width = max(len(name) for group in rows.values() for name, _ in group)
    if kind:
        return _aligned(rows[kind], width)
    return "\n\n".join(f"{each}\n{_aligned(group, width, '  ')}" for each, group in rows.items())


def benchmarks() -> dict[str, Path]:
    """The scripts that can be run, by name: those of the current folder, else those of the checkout that holds this file."""
    folders = Path("benchmarks"), registry.PACKAGE.parent.parent / "benchmarks"
    for folder in folders:
        scripts = {path.stem: path for path in sorted(folder.glob("[!_]*.py"))}
        if scripts:
            return scripts
    raise LookupError("there are no benchmarks here: run this in a checkout of regard, which has them in benchmarks/")


def _locate(name: str, kind: str | None) -> str:
    """The kind that a name belongs to; a kernel or a task is found without being told, where no stage is called the same."""
    stages = [each for findable in registry.FINDABLE for each in registry.names(findable)]
    others = [each for each in registry.FOLDERS if each not in registry.FINDABLE and name in registry.names(each)]
    return registry.locate(name, others[0] if kind is None and name not in stages and others else kind)


def _aligned(rows: list[tuple[str, str]], width: int = 0, indent: str = "") -> str:
    width = width or max(len(name) for name, _ in rows)
    return "\n".join(f"{indent}{name:<{width}}  {line}".rstrip() for name, line in rows)


def _first_line(script: Path) -> str:
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
