"""The command `regard`.

Only parsing and printing happens in this folder, one file for each group of commands, and nothing heavy is imported before a
command needs it: `regard --help` and `regard list` answer without torch.
"""

import errno
import io
import os
import sys
import traceback
import warnings
from contextlib import ExitStack, suppress
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from regard import __version__
from regard.errors import ConfigError, DamagedError, DataError, FailedError, MissingExtraError, RefusedError, UnwritableError
from regard.revision import describe_version

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

COMPONENT = "Python file, or installed name, of a score or other component of your own in the run; several times."
DEBUG = "On an error, show the traceback too."
MISTAKES = (ConfigError, DataError, MissingExtraError, RefusedError, DamagedError, UnwritableError)
"""Errors that the user can correct. So is a bare LookupError (an unknown name), but not a KeyError."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of writing alone. Where they name no file, they are about standard output: files are written by `atomic`."""
NAMED = FULL | {errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
NAMED |= {errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ESTALE}
"""Errors of a path that the user gave and can correct."""


class Command(TyperCommand):
    """A command whose errors are one paragraph on stderr; exit code 2 where the user can correct it, 1 otherwise."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; a value that is no number is answered in the words that settings have."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            option = next(iter(getattr(error.param, "opts", ())), "")
            text = _describe_value(error.__cause__)
            if not text or not option.startswith("--"):
                raise
            raise typer.Exit(_report(ConfigError(f"{option} {text}"))) from error

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.find_root().params.get("debug"):
                traceback.print_exc()
            raise typer.Exit(_report(error)) from error


class ModelCommand(Command):
    """A command that trains or opens runs: its option --component hands over components of the user's own."""

    def invoke(self, ctx: Any) -> Any:
        from regard.components import hand_over

        with ExitStack() as scope:
            try:
                scope.enter_context(hand_over(ctx.params.pop("component", None) or ()))
            except ConfigError as error:
                raise typer.Exit(_report(error)) from error
            return super().invoke(ctx)


Components = Annotated[list[str] | None, typer.Option("--component", help=COMPONENT, metavar="FILE.py")]
"""Parameter of a ModelCommand, which takes its value away before the function is called."""


def main() -> None:
    """The entry point. Output is UTF-8 whatever the terminal says: formulas and Chinese need it.

    File names need not be UTF-8, and messages have them in: bytes without a character are written as `\\udcff`.

    OMP_WAIT_POLICY=passive: on a machine with other load, spinning threads wait for each other, and a training of many small
    steps is ten times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.showwarning = lambda message, *_: typer.echo(f"regard: {message}", err=True)
    try:
        try:
            app(prog_name="regard")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        _close_stdout()
        sys.exit(1)
    except OSError as error:  # help and the version are written outside of any command
        sys.exit(_report(error))


VALUES = {"int_parsing": "a whole number", "int_from_float": "a whole number", "float_parsing": "a number"}
"""Types of options in words, by the kind of error of a value that has another."""


def _describe_value(cause: BaseException | None) -> str | None:
    """Text about the value of an option that is no number or out of its range; None for any other error."""
    errors = getattr(cause, "errors", None)
    if errors is None:
        return None
    error = errors()[0]
    value, bounds = error["input"], error.get("ctx", {})
    words = VALUES.get(error["type"]) or next(
        (
            f"{bounds[bound]} or {side}"
            for bound, side in (("ge", "more"), ("le", "less"))
            if error["type"].endswith("_equal") and bound in bounds
        ),
        None,
    )
    return None if words is None else f"needs to be {words}, got {value!r:.80}"


def _version(requested: bool) -> bool:
    if requested:
        typer.echo(describe_version(__version__))
        raise typer.Exit
    return requested


@app.callback()
def regard(
    debug: Annotated[bool, typer.Option("--debug", help=DEBUG)] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show version and git commit.")
    ] = False,
) -> None:
    """Attention in three visible stages: score, normalise, combine.

    \b
    Example:
        regard list
        regard show additive --steps
        regard train translate --out run/
    """


def _report(error: Exception) -> int:
    """Print one paragraph about the error that ended the command; returns the exit code."""
    mistake = type(error) is LookupError or isinstance(error, MISTAKES)
    text = str(error) if mistake or isinstance(error, FailedError) else None
    if text is None and isinstance(error, OSError):
        text = _unusable(error)
        mistake = text is not None
    with suppress(OSError):  # standard error may be lost as well, and the exit code says it too
        typer.echo(f"regard: {text or _unexpected(error)}", err=True)
    return 2 if mistake else 1


def _unusable(error: OSError) -> str | None:
    """The paragraph about a path, or standard output, that cannot be used; None where the error is about something else."""
    if error.filename is None and (error.errno in FULL or _stdout_fails()):
        _close_stdout()
        return f"cannot write to standard output: {error.strerror}; its end is missing: make room, or write elsewhere"
    if error.filename is not None and error.errno in NAMED:
        return f"{error.filename} cannot be used: {error.strerror}; give a path that can be read and written"
    return None


def _stdout_fails() -> bool:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        return True
    return False


def _close_stdout() -> None:
    """Discard the buffer of standard output: the interpreter would write it again at exit, and fail again."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _unexpected(error: Exception) -> str:
    line = " ".join(str(error).split())
    return f"{type(error).__name__}: {line} (`regard --debug ...` shows where)"


# Each file adds its commands to the app, in the order in which --help lists them.
from regard.cli import (  # noqa: E402, F401
    align,
    backtranslate,
    bench,
    check,
    compare,
    ensemble,
    evaluate,
    explain,
    export,
    import_,
    index,
    list_,
    predict,
    show,
    train,
    view,
)
