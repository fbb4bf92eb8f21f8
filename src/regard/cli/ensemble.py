"""Ensembles of trained models: regard ensemble."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import Components, ModelCommand, app
from regard.cli.train import ANY, settings
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.inference.ensemble.stacking import Stacking
    from regard.inference.sequence_predictor import SequencePredictor

COLUMNS = {"data.source", "data.target"}


@app.command(cls=ModelCommand, short_help="Combine models into an ensemble.", context_settings=ANY)
def ensemble(
    runs: Annotated[
        list[str], typer.Argument(help="Two directories or more that `regard train` made.", metavar="RUN RUN...")
    ],
    out: Annotated[Path | None, typer.Option(help="The new run directory, with copies of all members.")] = None,
    average: Annotated[str, typer.Option(help="What is averaged: probabilities, logits, memories.")] = "probabilities",
    weights: Annotated[str | None, typer.Option(help="A weight for each run: 2,1,1.  [default: equal]")] = None,
    stack: Annotated[
        str | None, typer.Option(help="Learn the weights on this table, which no member was trained on.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    component: Components = None,
) -> None:
    """Combine runs of one task with one vocabulary, such as trainings from different seeds, into an ensemble.

    The result is a run directory for regard predict, evaluate, align and view, independent of the members' directories.

    \b
    Example:
        regard ensemble run/1 run/2 run/3 --out all/
        regard ensemble run/1 run/2 --stack valid.tsv --out both/
    """
    if out is None:
        raise ConfigError("ensemble needs a new run directory: --out DIR")
    if weights is not None and stack is not None:
        raise ConfigError("--weights gives the weights and --stack learns them; choose one")
    options = [argument for argument in runs if argument.startswith("--")]
    paths = [Path(argument) for argument in runs if not argument.startswith("--")]
    columns = dict(setting.split("=", 1) for setting in settings(options))
    if unknown := sorted(columns.keys() - COLUMNS):
        raise ConfigError(f"ensemble has no setting {unknown[0]}; it takes --data.source and --data.target for --stack")
    from regard.inference.ensemble.build import ensemble as gather
    from regard.inference.ensemble.directory import Settings, check_free, write
    from regard.inference.ensemble.model import shares
    from regard.inference.load import load_sequence_predictor

    check_free(out)
    members = [load_sequence_predictor(path, device) for path in paths]
    try:
        stacked = None if stack is None else _stack(members, stack, columns, average)
        values = _numbers(weights) if stacked is None else stacked.weights
        gather(members, average=average, weights=values)  # raises for incompatible members
    except ValueError as error:
        raise ConfigError(str(error)) from error
    member_weights = shares(len(members), values)
    write(out, paths, Settings(average, member_weights))
    typer.echo(summarise(out, paths, average, member_weights, stacked))


def summarise(out: Path, paths: list[Path], average: str, shares: tuple[float, ...], stacked: "Stacking | None") -> str:
    """A line for each member with its weight, and the loss with learned weights."""
    lines = [f"{out}: {len(paths)} models, averaged by their {average}"]
    lines += [f"    {share:.4f}  {path}" for share, path in zip(shares, paths, strict=True)]
    if stacked is not None:
        lines.append(f"loss a token {stacked.equal:.4f} with equal weights, {stacked.learned:.4f} with these")
    return "\n".join(lines)


def _stack(members: "list[SequencePredictor]", table: str, columns: dict[str, str], average: str) -> "Stacking":
    from regard.data.table import read
    from regard.inference.ensemble.build import combine_models
    from regard.inference.ensemble.stacking import stack

    combine_models(members)
    data = members[0].config.data
    records = read(table, columns.get("data.source", data.source), columns.get("data.target", data.target))
    return stack(members, list(records), average)


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"--weights needs numbers with commas between them, such as 2,1,1, got {text!r}") from error
