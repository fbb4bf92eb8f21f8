"""Training of a model into a run directory: regard train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard import config as configuration
from regard import registry
from regard.cli import Command, app
from regard.config.hints import foreign_option
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.data.codec import Report
    from regard.training.experiment import Experiment

ANY = {"allow_extra_args": True, "ignore_unknown_options": True}
"""For commands that take settings by their dotted path, which are in the args of the context."""


@app.command(cls=Command, short_help="Train a model into a directory.", context_settings=ANY)
def train(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="A name from `regard list tasks`.", metavar="TASK")],
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", metavar="[CONFIG.toml]")] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory; an existing one is resumed.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train a model into a run directory, or resume a stopped training.

    Any setting is an option by its dotted path: --data.train=FILE --model.attention=NAME --train.max_steps=N. `regard show
    TASK` lists them all with their defaults. Without data the task trains on synthetic samples; with --data.train alone,
    about one source in ten is held out for validation.

    \b
    Example:
        regard train translate --out run/
        regard train translate --data.train=train.tsv --data.valid=valid.tsv --model.attention=additive --out run/
    """
    path, options = split_config(config, context.args)
    settings = read_config(task, path, options)
    if out is None:
        raise ConfigError("train needs a run directory: --out DIR")
    from regard.training.loop import train as run

    check_configs(task, [settings])
    experiment, report = build_experiment(task, settings, out)
    if not quiet:
        typer.echo(f"{task}: {report}", err=True)
    if report.held_out is not None:  # --quiet hides progress, and this is none
        typer.echo(str(report.held_out), err=True)
    typer.echo(summarise(out, run(experiment, out, quiet=quiet)))


def check_configs(task: str, configs: list[Any]) -> None:
    """Raise for settings without effect and models that cannot be built, before any data is read."""
    from regard import tasks
    from regard.tasks._validate import buildable, heeded, searchable, trainable

    heeded(configs, tasks.find(task).Config())
    for config in configs:
        trainable(config)
        searchable(config)
        buildable(config)


def build_experiment(task: str, config: Any, out: Path | None = None) -> "tuple[Experiment, Report]":
    """The experiment of a config; incompatible settings raise ConfigError."""
    from regard import tasks

    try:
        return tasks.experiment(task, config, out)
    except (ConfigError, DataError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from error


def split_config(config: Path | None, arguments: list[str]) -> tuple[Path | None, list[str]]:
    """Separate the TOML file from settings: without a file, the first setting is parsed in its place."""
    if config is not None and str(config).startswith("--"):
        return None, [str(config), *arguments]
    return config, arguments


def read_config(task: str, path: Path | None, options: list[str]) -> Any:
    """The task's config from a file and dotted options."""
    registry.locate(task, "tasks")
    overrides = settings(options)
    from regard import tasks

    sources = [] if path is None else [_without_task(task, path)]
    return configuration.read(tasks.find(task).Config, *sources, overrides=overrides)


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


def _without_task(task: str, path: Path) -> dict[str, Any]:
    """The settings of a config file; a task that it names must be this one."""
    table = configuration.parse(path)
    named = table.pop("task", task)
    if named != task:
        raise ConfigError(f"{path} is for the task {configuration.quoted(named)}, not for {task!r}")
    return table


def summarise(out: Path, metrics: dict[str, Any]) -> str:
    """One line about a finished training. A metric that is not finite is null in the metrics: the training diverged."""
    valid = metrics.get("valid") or {}
    texts = {name: "not finite" if value is None else f"{value:.4g}" for name, value in valid.items()}
    figures = " · ".join(f"{name} {text}" for name, text in texts.items())
    diverged = "; it diverged: lower train.learning_rate or train.gradient_clip" if None in valid.values() else ""
    return f"{out}: {metrics['ended']}; best at step {metrics['step']}: {figures}{diverged}"
