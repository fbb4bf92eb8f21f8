"""The command `regard`.

Only parsing and printing happens in this folder, one file for each group of commands, and nothing heavy is imported before a
command needs it: `regard --help` and `regard list` answer without torch.
"""

import io
import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from regard import __version__
from regard.config import ConfigError
from regard.data.lines import DataError
from regard.training.errors import DamagedError, FailedError, RefusedError, UnwritableError

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

DEBUG = "On an error, show the traceback too."
MISTAKES = (ConfigError, DataError, RefusedError, DamagedError, UnwritableError)
"""What the user can mend. A bare LookupError is one too (an unknown name), but a KeyError is no user's."""


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
            mistake = type(error) is LookupError or isinstance(error, MISTAKES)
            told = str(error) if mistake or isinstance(error, FailedError) else _unexpected(error)
            typer.echo(f"regard: {told}", err=True)
            raise typer.Exit(2 if mistake else 1) from error


def main() -> None:
    """The entry point. Output is UTF-8 whatever the terminal says: formulas and Chinese need it.

    Threads that wait sleep instead of spinning: on a machine with other work to do, spinning ones wait for each other and a
    training of many small steps is ten times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    warnings.showwarning = lambda message, *_: typer.echo(f"regard: {message}", err=True)
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
        regard train translate --out run/
    """


def _unexpected(error: Exception) -> str:
    line = " ".join(str(error).split())
    return f"{type(error).__name__}: {line} (`regard --debug ...` shows where)"


# Each file adds its commands to the app, in the order in which --help lists them.
from regard.cli import browse, train, backtranslate, index, predict, evaluate, align, compare, ensemble  # noqa: E402, F401, I001
from regard.cli import view, export, importing  # noqa: E402, F401
