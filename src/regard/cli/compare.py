"""Train the same thing in several ways and set the results side by side: regard compare."""

import json
import math
import statistics
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from regard.cli import Command, app
from regard.cli.train import ANY, _split, prepared, read, sensible
from regard.config import ConfigError


class Run(NamedTuple):
    """One training and what came of it."""

    value: str
    seed: int
    figures: dict[str, float]


@app.command(cls=Command, short_help="Train several ways and compare.", context_settings=ANY)
def compare(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="A name from `regard list tasks`.", metavar="TASK")],
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", metavar="[CONFIG.toml]")] = None,
    vary: Annotated[str, typer.Option(help="A setting and its values: model.attention=none,additive.")] = "",
    out: Annotated[Path | None, typer.Option(help="Where each run gets its directory.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many trainings of each kind, to show the spread.")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train with each value of one setting, evaluate on the validation set, print one table.

    What is already trained in the directory is not trained again. The table is written to compare.md, all figures to
    compare.json.

    \b
    Example:
        regard compare translate --vary model.attention=none,additive,bilinear,transformer --seeds 3 --out cmp/
    """
    path, options = _split(config, context.args)
    setting, equals, values = vary.partition("=")
    if not equals or not values:
        raise ConfigError("compare needs --vary SETTING=VALUE,VALUE")
    if out is None:
        raise ConfigError("compare needs a directory for its runs: --out DIR")
    if "train.seed" in vary or any(option.startswith("--train.seed") for option in options):
        raise ConfigError("compare sets train.seed itself: --seeds N trains each kind N times")
    plan = [(value, seed) for value in values.split(",") for seed in range(seeds)]
    settings = {each: read(task, path, [*options, f"--{setting}={each[0]}", f"--train.seed={each[1]}"]) for each in plan}
    sensible(task, list(settings.values()))
    runs = []
    for (value, seed), chosen in settings.items():
        typer.echo(f"{setting}={value}, seed {seed}", err=True)
        runs.append(Run(value, seed, _train(task, chosen, out / f"{_name(value)}-{seed}", quiet)))
    table = tabulate(setting, runs)
    (out / "compare.md").write_text(table + "\n", encoding="utf-8")
    (out / "compare.json").write_text(json.dumps([each._asdict() for each in runs], indent=1) + "\n", encoding="utf-8")
    typer.echo(table)


def _train(task: str, config: Any, directory: Path, quiet: bool) -> dict[str, float]:
    """One training, and the task's measures on its validation set."""
    from regard.trained import load
    from regard.training.loop import train as run

    experiment, _ = prepared(task, config)
    ended = run(experiment, directory, quiet=quiet)
    model = load(directory, config.train.device)
    measured = model.measure([example.record for example in experiment.valid])
    numbers = {name: found.value for name, found in measured.items() if not isinstance(found, list)}
    return {"parameters": float(ended["parameters"]), "seconds": ended["seconds"], **ended["valid"], **numbers}


def tabulate(setting: str, runs: list[Run]) -> str:
    """A row for each value: the mean of every figure, and its spread over the seeds where there are several."""
    names = list(runs[0].figures)
    rows = [[setting, *names]]
    for value in dict.fromkeys(run.value for run in runs):
        mine = [run for run in runs if run.value == value]
        rows.append([value, *(_mean([run.figures.get(name, math.nan) for run in mine]) for name in names)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _mean(values: list[float]) -> str:
    middle = statistics.fmean(values)
    if len(values) == 1:
        return f"{middle:,.0f}" if middle >= 1000 else f"{middle:.3g}" if middle < 10 else f"{middle:.1f}"
    spread = statistics.stdev(values)
    return f"{middle:,.0f} ± {spread:,.0f}" if middle >= 1000 else f"{middle:.4g} ± {spread:.2g}"


def _name(value: str) -> str:
    """A value as the name of a folder."""
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in value)
