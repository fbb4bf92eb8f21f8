"""Training of a model into a run directory: regard train."""

from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from regard import api, registry
from regard import config as configuration
from regard.cli import Components, ModelCommand, app
from regard.cli._comparison import format_table, is_compared, metrics_of_table
from regard.config.hints import foreign_option
from regard.errors import ConfigError

ANY = {"allow_extra_args": True, "ignore_unknown_options": True}
"""For commands that take settings by their dotted path, which are in the args of the context."""


@app.command(cls=ModelCommand, short_help="Train a model into a directory.", context_settings=ANY)
def train(
    context: typer.Context,
    task: Annotated[str | None, typer.Argument(help="A name from `regard list tasks`.", metavar="[TASK]")] = None,
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", metavar="[CONFIG.toml]")] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory; an existing one is resumed.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    component: Components = None,
) -> None:
    """Train a model into a run directory, or resume a stopped training.

    Any setting is an option by its dotted path: --data.train=FILE --model.attention=NAME --train.max_steps=N. `regard show
    TASK` lists them all with their defaults. Without data the task trains on synthetic samples; with --data.train alone,
    about one source in ten is held out for validation. Without TASK the run in --out is resumed with its settings.

    \b
    Example:
        regard train translate --out run/
        regard train translate --data.train=train.tsv --data.valid=valid.tsv --model.attention=additive --out run/
        regard train --out run/ --train.max_steps=1000
    """
    name, path, options = split_config(task, config, context.args)
    if name is None and out is None:
        raise ConfigError("train needs a task and a run directory: regard train TASK --out DIR; --out RUN resumes a run")
    overrides = settings(options)  # mistakes are answered before torch is waited for
    if name is not None:
        chosen = read_config(name, path, options)
    if out is None:
        raise ConfigError("train needs a run directory: --out DIR")
    if name is None:
        name, chosen = api.read_run_config(out, overrides=overrides)
    typer.echo(summarise(out, api.train_config(name, chosen, out, quiet=quiet)))


def split_config(task: str | None, config: Path | None, options: list[str]) -> tuple[str | None, Path | None, list[str]]:
    """Task, TOML file and settings of a command line: a setting may stand in the place of either argument."""
    tokens = [str(token) for token in (task, config) if token is not None] + options
    leading = list(takewhile(lambda token: not token.startswith("--"), tokens[:2]))
    file = Path(leading[1]) if len(leading) > 1 else None
    return (leading[0] if leading else None), file, tokens[len(leading) :]


def read_config(task: str, path: Path | None, options: list[str]) -> Any:
    """The task's config from a file and dotted options."""
    registry.locate(task, "tasks")
    if path is not None and is_table(str(path)):
        raise ConfigError(f"{path} is no TOML file of settings; a table to train on is named by --data.train={path}")
    return api.read_config(task, *([] if path is None else [path]), overrides=settings(options))


def settings(options: list[str], table: str = "data.train") -> list[str]:
    """["a.b=c"] from --a.b=c and --a.b c. `table` is the setting that a file on its own is probably meant for."""
    overrides, rest = [], iter(options)
    for option in rest:
        if not option.startswith("--") and is_table(option):
            raise ConfigError(f"{option} is a file, and no setting; a table is named by --{table}={option}")
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


def is_table(name: str) -> bool:
    """True for the name of a file that tables have."""
    return name.removesuffix(".gz").endswith((".tsv", ".csv", ".txt", ".jsonl", ".json", ".ndjson", ".parquet"))


def summarise(out: Path, metrics: dict[str, Any]) -> str:
    """One line about a finished training, and a table where other predictors stand beside the model.

    A metric that is not finite is null in the metrics: the training diverged.
    """
    valid = metrics.get("valid") or {}
    compared = metrics_of_table(valid)
    texts = {
        name: "not finite" if value is None else f"{value:.4g}"
        for name, value in valid.items()
        if name not in compared and not is_compared(name)
    }
    figures = " · ".join(f"{name} {text}" for name, text in texts.items())
    diverged = "; it diverged: lower train.learning_rate or train.gradient_clip" if None in valid.values() else ""
    table = f"\n{format_table(valid)}" if compared else ""
    return f"{out}: {metrics['ended']}; best at step {metrics['step']}: {figures}{diverged}{table}"
