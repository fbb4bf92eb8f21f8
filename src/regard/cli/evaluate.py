"""Evaluation of a trained model on a test set: regard evaluate."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import Components, ModelCommand, app
from regard.cli._bad_inputs import LISTED
from regard.cli._comparison import format_table, is_compared, metrics_of_table
from regard.cli._engine_report import report_engines
from regard.cli._search_options import PART, override_search
from regard.cli._task_options import with_task_options
from regard.cli.train import ANY, settings
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.decoding.logprobs import UndistributedError
    from regard.inference.predictor import Predictor
    from regard.metrics.text import Bucket, Metrics


EMPTY_ANSWERS = "their answers are empty, as those of predict, and count as such"
NEEDED = "--data.test=FILE, and {} for its columns; and any --search.NAME=VALUE"


@app.command(cls=ModelCommand, short_help="Evaluate a trained model on a test set.", context_settings=ANY)
@with_task_options("evaluate")
def evaluate(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size; 1 is greedy.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print metrics as one JSON object.")] = False,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Report which decoding engine runs, and why not a faster one.")
    ] = False,
    component: Components = None,
    task_options: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Evaluate a trained model on --data.test=FILE, which has the columns of the training data.

    \b
    Example:
        regard evaluate run/ --data.test=test.tsv
        regard evaluate run/ --data.test=test.tsv --beam 5 --search.mbr=chrf
        regard evaluate run/ --data.test=sales.csv --backtest 20
    """
    options = settings(context.args, "data.test")
    columns_given = dict(option.split("=", 1) for option in options if not option.startswith(PART))
    from regard.inference.load import load

    model = load(directory, device)
    columns = [f"data.{name}" for name in model.config.data.columns]
    needed = NEEDED.format(" and ".join(f"--{name}" for name in columns))
    if unknown := columns_given.keys() - {"data.test", *columns}:
        raise ConfigError(f"evaluate has no setting {sorted(unknown)[0]}; it takes {needed}")
    search = [option for option in options if option.startswith(PART)]
    model.check_search_options({"beam": beam}, search)
    model.set_options(task_options)
    override_search(model, search, beam)
    if verbose:
        report_engines(context, model)
    data = model.config.data
    test = columns_given.get("data.test", data.test)
    if test is None:
        raise ConfigError(f"evaluate takes {needed}{_held_out(data, directory)}")
    renamed = {name: columns_given[f"data.{name}"] for name in data.columns if f"data.{name}" in columns_given}
    records = model.read_table(test, **renamed)
    figures, errors = measure(model, records, beam)
    typer.echo(json.dumps(figures_to_dict(figures), ensure_ascii=False) if as_json else format_figures(figures))
    if test == data.train and not Path(test).is_dir():  # of a folder the files of a test are read
        typer.echo(f"{test} is what the run was trained on: how it does on new data, other lines have to say", err=True)
    if cut := len(records) - len(model.codec.select_fitting(records)):
        typer.echo(
            f"{cut:,} of {len(records):,} sources have more than the {model.codec.max_source_length - 1} tokens that the "
            f"model reads: {'of these the beginning was read' if model.reads_beginnings else EMPTY_ANSWERS}",
            err=True,
        )
    if errors:
        places = sorted(errors)
        for place in places[:LISTED]:
            typer.echo(f"regard: {records[place].where}: {errors[place]}", err=True)
        raise DataError(
            f"{records[places[0]].where} cannot be measured ({len(places):,} such of {len(records):,} in all): its scores "
            "are not finite. The figures are those of all others"
        )


def measure(
    model: "Predictor", records: "Sequence[Any]", beam: int | None = None
) -> "tuple[Metrics, dict[int, UndistributedError]]":
    """Metrics of the records with finite scores, and the errors of the others, by index.

    The records are checked one by one only where the metrics of all are not finite, or raise an error.
    """
    from regard.decoding.logprobs import UndistributedError
    from regard.metrics.text import Measurement

    try:
        figures = model.evaluate_records(records, beam=beam)
        if all(math.isfinite(figure.value) for figure in figures.values() if isinstance(figure, Measurement)):
            return figures, {}
        reason = None
    except ValueError as error:  # such as that of a metric which takes finite numbers
        if isinstance(error, DataError) and not isinstance(error, UndistributedError):
            raise
        reason = error
    errors = model.find_unscored(records, beam=beam)
    if len(errors) == len(records):
        raise next(iter(errors.values()))
    if errors:
        figures = model.evaluate_records([record for place, record in enumerate(records) if place not in errors], beam=beam)
    elif reason is not None:
        raise reason
    return figures, errors


def _held_out(data: Any, directory: Path) -> str:
    """Hint at the metrics of the held-out validation data of a run; empty for any other run."""
    figures = directory / "metrics.json"
    if data.train is None or data.valid is not None or not figures.exists():
        return ""
    return f". What the run came to on the lines of {data.train} that were held out is in {figures}"


def format_figures(figures: "Metrics") -> str:
    """Metrics as text: a score with its interval on each line, scores by length below their name.

    Metrics that other predictors have too are a table, with the intervals of the model and what they are below it.
    """
    from rich.cells import cell_len  # labels may be of wide letters

    compared = metrics_of_table(figures)
    values = {name: figure.value for name, figure in figures.items() if not isinstance(figure, list)}
    lines = [format_table(values), ""] if compared else []
    wide = max([12, *map(cell_len, figures)])
    for name, figure in figures.items():
        if is_compared(name):
            continue
        if name in compared and not isinstance(figure, list):
            interval = f"95 % [{figure.low:.4g}, {figure.high:.4g}]   " if figure.low < figure.high else ""
            lines.append(f"{name:<{wide}} {interval}{figure.signature}")
        elif isinstance(figure, list):
            lines += [
                name,
                *(f"    {_lengths(bucket):<8} {bucket.value:6.2f}   {bucket.sentences} sentences" for bucket in figure),
            ]
        else:
            named = name + " " * (wide - cell_len(name))
            lines.append(f"{named} {figure.value:6.2f}   95 % [{figure.low:.2f}, {figure.high:.2f}]   {figure.signature}")
    return "\n".join(lines)


def figures_to_dict(figures: "Metrics") -> dict[str, Any]:
    """Metrics as a dictionary for JSON."""
    return {
        name: [bucket._asdict() for bucket in figure] if isinstance(figure, list) else figure._asdict()
        for name, figure in figures.items()
    }


def _lengths(bucket: "Bucket") -> str:
    return f"{bucket.first}+" if bucket.last is None else f"{bucket.first}-{bucket.last}"
