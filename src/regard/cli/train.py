"""Train a model into a directory: regard train."""

from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from regard import config as configuration
from regard import registry
from regard.api import read_run_settings, read_settings, train_settings
from regard.cli import Command, app
from regard.config.hints import foreign_option
from regard.errors import ConfigError

ANY = {"allow_extra_args": True, "ignore_unknown_options": True}
"""For commands that take settings by their dotted path: they stand in the context's args."""


@app.command(cls=Command, short_help="Train a model into a directory.", context_settings=ANY)
def train(
    context: typer.Context,
    task: Annotated[str | None, typer.Argument(help="A name from `regard list tasks`.", metavar="[TASK]")] = None,
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", metavar="[CONFIG.toml]")] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory; a run that is there is resumed.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train a model into a directory, or resume a run where it was stopped.

    Any setting is an option by its dotted path: --data.train=FILE --model.attention=NAME --train.max_steps=N. `regard show
    TASK` lists them all with their defaults. Without data the task trains on samples that it draws itself; with --data.train
    alone, about one source in ten is held out to validate with. Without TASK the run in --out is resumed with its settings.

    \b
    Example:
        regard train translate --out run/
        regard train translate --data.train=train.tsv --data.valid=valid.tsv --model.attention=additive --out run/
        regard train --out run/ --train.max_steps=1000
    """
    name, path, options = split(task, config, context.args)
    if name is None and out is None:
        raise ConfigError("train needs a task and a directory, regard train TASK --out DIR, or --out RUN to resume a run")
    overrides = settings(options)  # mistakes are answered before torch is waited for
    if name is not None:
        chosen = read(name, path, options)
    if out is None:
        raise ConfigError("train needs a directory for what it learns: --out DIR")
    if name is None:
        name, chosen = read_run_settings(out, overrides=overrides)
    typer.echo(summary(out, train_settings(name, chosen, out, quiet=quiet)))


def split(task: str | None, config: Path | None, options: list[str]) -> tuple[str | None, Path | None, list[str]]:
    """Task, TOML file and settings of a command line: a setting may stand in the place of either argument."""
    tokens = [str(token) for token in (task, config) if token is not None] + options
    leading = list(takewhile(lambda token: not token.startswith("--"), tokens[:2]))
    file = Path(leading[1]) if len(leading) > 1 else None
    return (leading[0] if leading else None), file, tokens[len(leading) :]


def read(task: str, path: Path | None, options: list[str]) -> Any:
    """The task's config from a file and dotted options."""
    registry.locate(task, "tasks")
    return read_settings(task, *([] if path is None else [path]), overrides=settings(options))


def settings(options: list[str]) -> list[str]:
    """["a.b=c"] from --a.b=c and --a.b c."""
    overrides, rest = [], iter(options)
    for option in rest:
        if not option.startswith("--"):
            raise ConfigError(
                f"{configuration.quoted(option)} is no setting; settings look like --train.learning_rate=0.001"
            )
        name, equals, value = option[2:].partition("=")
        if not equals:
            value = next(rest, "")
            if not value or value.startswith("--"):
                name = configuration.shortened(name)
                raise ConfigError(foreign_option(name) or f"--{name} needs a value: --{name}=VALUE")
        overrides.append(f"{name}={value}")
    return overrides


def summary(out: Path, metrics: dict[str, Any]) -> str:
    """One line on what a training came to. A figure that is not finite is null in the metrics: the training diverged."""
    valid = metrics.get("valid") or {}
    texts = {name: "not finite" if value is None else f"{value:.4g}" for name, value in valid.items()}
    figures = " · ".join(f"{name} {text}" for name, text in texts.items())
    diverged = "; it diverged: lower train.learning_rate or train.gradient_clip" if None in valid.values() else ""
    return f"{out}: {metrics['ended']}; best at step {metrics['step']}: {figures}{diverged}"
