"""The command `regard`: what there is, what each thing does, and how fast it is.

Only parsing and printing happens here, and nothing heavy is imported before a command needs it: `regard --help` and
`regard list` answer without torch.
"""

import ast
import difflib
import io
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from regard import __version__, lookup

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

DEBUG = "On an error, show the traceback too."
KINDS = f"One of {', '.join(lookup.FOLDERS)}."


class Command(TyperCommand):
    """A command whose failures are one paragraph on stderr: 2 where the user can mend it, 1 where something broke."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.find_root().params.get("debug"):
                traceback.print_exc()
            mistake = type(error) is LookupError  # a KeyError is one as well, but no user's
            typer.echo(f"regard: {error}" if mistake else f"regard: {_unexpected(error)}", err=True)
            raise typer.Exit(2 if mistake else 1) from error


def main() -> None:
    """The entry point. Output is UTF-8 whatever the terminal says: formulas and Chinese need it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    app(prog_name="regard")


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def regard(
    debug: Annotated[bool, typer.Option("--debug", help=DEBUG)] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Attention in three visible stages: score, normalise, combine.

    \b
    Example:
        regard list
        regard show additive --steps
    """


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
    from regard import show as text

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
    kinds = [kind] if kind else list(lookup.FOLDERS)
    rows = {each: [(name, lookup.summary(name, each)) for name in lookup.names(each)] for each in kinds}
    width = max(len(name) for group in rows.values() for name, _ in group)
    if kind:
        return _aligned(rows[kind], width)
    return "\n\n".join(f"{each}\n{_aligned(group, width, '  ')}" for each, group in rows.items())


def benchmarks() -> dict[str, Path]:
    """The scripts that can be run, by name: those of the current folder, else those of the checkout that holds this file."""
    folders = Path("benchmarks"), lookup.PACKAGE.parent.parent / "benchmarks"
    for folder in folders:
        scripts = {path.stem: path for path in sorted(folder.glob("[!_]*.py"))}
        if scripts:
            return scripts
    raise LookupError("there are no benchmarks here: run this in a checkout of regard, which has them in benchmarks/")


def _locate(name: str, kind: str | None) -> str:
    """The kind that a name belongs to; a kernel is found without being told, where no stage is called the same."""
    stages = [each for findable in lookup.FINDABLE for each in lookup.names(findable)]
    only_kernel = kind is None and name not in stages and name in lookup.names("kernels")
    return lookup.locate(name, "kernels" if only_kernel else kind)


def _aligned(rows: list[tuple[str, str]], width: int = 0, indent: str = "") -> str:
    width = width or max(len(name) for name, _ in rows)
    return "\n".join(f"{indent}{name:<{width}}  {line}".rstrip() for name, line in rows)


def _first_line(script: Path) -> str:
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def _unexpected(error: Exception) -> str:
    line = " ".join(str(error).split())
    return f"{type(error).__name__}: {line} (`regard --debug ...` shows where)"
