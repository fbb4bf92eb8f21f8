"""Comparison of settings by training each of them: regard compare."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.api import build_experiment
from regard.cli import Command, Components, ModelCommand, app
from regard.cli.train import ANY, read_config, settings, split_config
from regard.errors import ConfigError, Interrupted

SAVED = 30.0
"""Seconds within which a killed worker of a comparison has saved its checkpoint and exited."""
VARY = "A setting and its values: model.attention=none,additive. Several times: every combination."
WITH = 'Settings that accompany a value: "model.decoder=transformer: model.encoder=transformer model.heads=4".'


@app.command(cls=ModelCommand, short_help="Train with several settings and compare.", context_settings=ANY)
def compare(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="A name from `regard list tasks`.", metavar="TASK")],
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", metavar="[CONFIG.toml]")] = None,
    vary: Annotated[list[str] | None, typer.Option(help=VARY)] = None,
    along: Annotated[list[str] | None, typer.Option("--with", help=WITH)] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of all runs.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each combination, for the spread.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Parallel trainings; they share the cores.")] = 1,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size of the evaluation; 1 is greedy.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    component: Components = None,
) -> None:
    """Train with each value of one or more settings, evaluate on the validation set, print one table.

    The table is written to compare.md, the page to compare.html, all figures to compare.json, after each training. With
    --data.test=FILE the test set is evaluated too. The value `every` stands for all names, and mechanisms, score, normalise
    and scope for all of their kind. Finished trainings are kept, stopped ones resumed. A failed training has its reason in
    the table; the others continue, and the exit code is 1.

    \b
    Example:
        regard compare translate --vary model.attention=none,additive,bilinear,transformer --seeds 3 --out cmp/
        regard compare translate --vary model.attention=every --vary model.decoder=recurrent,transformer \\
            --with "model.decoder=transformer: model.encoder=transformer" --seeds 3 --jobs 4 --out cmp/
    """
    _, path, options = split_config(task, config, context.args)
    if not vary:
        raise ConfigError("compare needs --vary SETTING=VALUE,VALUE")
    if out is None:
        raise ConfigError("compare needs a directory for its runs: --out DIR")
    if any(option.startswith("--train.seed") for option in options):
        raise ConfigError("compare sets train.seed itself: --seeds N trains each kind N times")
    settings(options)  # typing errors are reported before torch is imported
    default = type(read_config(task, path, options))()
    from regard.compare import variations
    from regard.compare.plan import plan
    from regard.compare.sweep import Sweep

    varied = variations.parse_varied(vary, type(default))
    more = variations.parse_conditional(along or [], varied, type(default))
    planned = plan(
        lambda extra: read_config(task, path, [*options, *(f"--{option}" for option in extra)]), varied, more, seeds, default
    )
    sweep = Sweep(task, tuple(setting for setting, _ in varied), planned, out, seeds=seeds, jobs=jobs, beam=beam)
    try:
        typer.echo(sweep.run(quiet))
    except Interrupted:
        ended = [outcome.state for outcome in sweep.outcomes.values()].count("done")
        typer.echo(
            f"stopped: {ended} of {len(sweep.outcomes)} trainings are done and kept in {out}, those under way have saved a "
            "checkpoint; the same command goes on from there",
            err=True,
        )
        raise
    if sweep.failed():
        raise typer.Exit(1)


@app.command("compare-one", cls=Command, hidden=True)
def compare_one() -> None:
    """One training of a comparison, requested by the parent process on standard input."""
    from regard import config as configuration
    from regard import tasks
    from regard.compare.figures import save_figures
    from regard.compare.workers import read_request
    from regard.components import hand_over
    from regard.training.lock import wait_until_free

    request = read_request()
    wait_until_free(Path(request["directory"]), SAVED)
    directory = Path(request["directory"])
    with hand_over(request["components"]):
        config = configuration.check(tasks.find(request["task"]).Config, request["config"])
        figures = _train_and_evaluate(request["task"], config, directory, request["beam"])
    save_figures(directory, config, request["beam"], figures)


def _train_and_evaluate(task: str, config: Any, directory: Path, beam: int | None) -> dict[str, Any]:
    """Train a model, and evaluate it on the validation set and, where there is one, the test set."""
    from regard.cli.evaluate import figures_to_dict
    from regard.inference.load import load
    from regard.training.loop import train as run

    experiment, _ = build_experiment(task, config, directory)
    ended = run(experiment, directory)
    model, data = load(directory, config.train.device), config.data
    valid = figures_to_dict(model.evaluate_examples(experiment.valid, beam=beam))
    figures = {"valid": {**valid, "loss": {"value": ended["valid"].get("loss")}}}
    if data.test is not None:
        figures["test"] = figures_to_dict(
            model.evaluate(data.test, beam=beam, **{name: getattr(data, name) for name in data.columns})
        )
    throughput = ended["tokens"] / max(ended["seconds"], 1e-9)
    return {
        **figures,
        **{name: ended[name] for name in ("parameters", "seconds", "step", "ended")},
        "tokens_per_second": throughput,
    }
