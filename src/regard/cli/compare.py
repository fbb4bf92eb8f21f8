"""Train the same thing in several ways and set the results side by side: regard compare."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli import Command, app
from regard.cli.train import ANY, _split, prepared, read, settings
from regard.errors import ConfigError

SAVED = 30.0
"""Seconds within which the worker of a comparison that was killed has saved its training and gone."""
VARY = "A setting and its values: model.attention=none,additive. Several times: every combination."
WITH = 'What goes with a value: "model.decoder=transformer: model.encoder=transformer model.heads=4".'


@app.command(cls=Command, short_help="Train several ways and compare.", context_settings=ANY)
def compare(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="A name from `regard list tasks`.", metavar="TASK")],
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", metavar="[CONFIG.toml]")] = None,
    vary: Annotated[list[str] | None, typer.Option(help=VARY)] = None,
    along: Annotated[list[str] | None, typer.Option("--with", help=WITH)] = None,
    out: Annotated[Path | None, typer.Option(help="Where each run gets its directory.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many trainings of each kind, to show the spread.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many trainings at once; they share the cores.")] = 1,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses followed at once when measuring; 1 is greedy.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train with each value of one or more settings, measure on the validation set, print one table.

    The table is written to compare.md, the page to compare.html, all figures to compare.json, anew after each training. With
    --data.test=FILE that is measured too. Among the values, `every` is all there are, and mechanisms, score, normalise and
    scope are all of their kind. What is trained already is not trained again, and what was stopped goes on. A training that
    fails leaves its reason in the table; the others go on, and the exit code is 1.

    \b
    Example:
        regard compare translate --vary model.attention=none,additive,bilinear,transformer --seeds 3 --out cmp/
        regard compare translate --vary model.attention=every --vary model.decoder=recurrent,transformer \\
            --with "model.decoder=transformer: model.encoder=transformer" --seeds 3 --jobs 4 --out cmp/
    """
    path, options = _split(config, context.args)
    if not vary:
        raise ConfigError("compare needs --vary SETTING=VALUE,VALUE")
    if out is None:
        raise ConfigError("compare needs a directory for its runs: --out DIR")
    if any(option.startswith("--train.seed") for option in options):
        raise ConfigError("compare sets train.seed itself: --seeds N trains each kind N times")
    settings(options)  # a slip of the pen is answered before torch is waited for
    default = type(read(task, path, options))()
    from regard.compare import variations as varying
    from regard.compare.plan import plan
    from regard.compare.sweep import Sweep

    varied = varying.varied(vary, type(default))
    more = varying.along(along or [], varied, type(default))
    planned = plan(
        lambda extra: read(task, path, [*options, *(f"--{each}" for each in extra)]), varied, more, seeds, default
    )
    sweep = Sweep(task, tuple(each.setting for each in varied), planned, out, seeds=seeds, jobs=jobs, beam=beam)
    typer.echo(sweep.run(quiet))
    if sweep.failed():
        raise typer.Exit(1)


@app.command("compare-one", cls=Command, hidden=True)
def compare_one() -> None:
    """One training of a comparison, as its parent asks on standard input."""
    from regard import config as configuration
    from regard import tasks
    from regard.compare.figures import store
    from regard.compare.workers import asked
    from regard.training.lock import wait_until_free

    request = asked()
    wait_until_free(Path(request["directory"]), SAVED)
    config = configuration.check(tasks.find(request["task"]).Config, request["config"])
    directory = Path(request["directory"])
    store(directory, config, request["beam"], _measured(request["task"], config, directory, request["beam"]))


def _measured(task: str, config: Any, directory: Path, beam: int | None) -> dict[str, Any]:
    """Train one, and measure it on the validation set and, where there is one, the test set."""
    from regard.cli.evaluate import plain
    from regard.inference.load import load
    from regard.training.loop import train as run

    experiment, _ = prepared(task, config, directory)
    ended = run(experiment, directory)
    model, data = load(directory, config.train.device), config.data
    valid = plain(model.evaluate_examples(experiment.valid, beam=beam))
    figures = {"valid": {**valid, "loss": {"value": ended["valid"].get("loss")}}}
    if data.test is not None:
        figures["test"] = plain(model.evaluate(data.test, beam=beam, **{name: getattr(data, name) for name in data.columns}))
    pace = ended["tokens"] / max(ended["seconds"], 1e-9)
    return {
        **figures,
        **{name: ended[name] for name in ("parameters", "seconds", "step", "ended")},
        "tokens_per_second": pace,
    }
