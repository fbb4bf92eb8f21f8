"""Vector indices for models of retrieve: regard index, and predict --index."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard import io
from regard.cli import Components, ModelCommand, app
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.data.records import Record
    from regard.tasks.retrieve.index import Kind

ENDING = ".safetensors"


@app.command(cls=ModelCommand, short_help="Build a vector index of pictures or texts.")
def index(
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train retrieve` made.", metavar="DIR")],
    file: Annotated[str, typer.Option(help="A list or a table with a picture's path or a text on each line.")],
    out: Annotated[Path, typer.Option(help="Write the index here: NAME.safetensors.")],
    of: Annotated[str, typer.Option(help="Kind of the entries: pictures, texts, or auto: by the first line.")] = "auto",
    column: Annotated[str, typer.Option(help="Column of a table: its name, or its number from 1.")] = "1",
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    component: Components = None,
) -> None:
    """Build a vector index of pictures or texts, for `regard predict --index`.

    Paths are relative to the folder of the list, as in training tables. Duplicates are indexed once. If an entry cannot be
    read, its line is reported and nothing is written. An index is for the model that built it.

    \b
    Example:
        regard index run/ --file pictures.txt --out pictures.safetensors
        regard index run/ --file test.tsv --column 2 --of texts --out texts.safetensors
        regard predict run/ "a red heart" --index pictures.safetensors --nbest 10
    """
    if of not in ("auto", "pictures", "texts"):
        raise ConfigError(f"--of needs to be pictures, texts or auto, got {of!r}")
    _check_path(out)
    from regard.inference.load import load
    from regard.tasks.retrieve.index import refuse_unreadable
    from regard.tasks.retrieve.predictor import Retriever

    model = load(directory, device)
    if not isinstance(model, Retriever):
        raise ConfigError(f"an index is for models of retrieve, and {directory} is a run of {model.name}")
    records, twice = _read_unique(file, column)
    kind = _kind(records, of)
    refuse_unreadable(model.codec, records, kind)
    built = model.indexed(records, kind)
    built.save(out)
    again = f", {twice:,} more were there already" * (twice > 0)
    typer.echo(f"{out}: {len(built):,} {kind}{again} ({out.stat().st_size:,} bytes)")


def _check_path(path: Path) -> None:
    """Raise for a path that no index can be written to, before anything is computed."""
    if path.suffix != ENDING:
        raise ConfigError(f"an index is a file called NAME{ENDING}, got {path.name!r}; name it so")
    io.check_target(path)


def _read_unique(file: str, column: str) -> "tuple[list[Record], int]":
    """Distinct entries of a list in order, and the number of duplicates."""
    from regard.data import table

    every = [record._replace(target=None) for record in table.read(file, column, column)]
    once = list({record.source: record for record in reversed(every)}.values())[::-1]
    return once, len(every) - len(once)


def _kind(records: "Sequence[Record]", of: str) -> "Kind":
    """Kind of the entries: as given, or pictures where the first is named as one or is a file."""
    from regard.data.records import locate
    from regard.tasks.retrieve.predictor import ENDINGS

    if of == "auto":
        first = records[0]
        of = "pictures" if first.source.lower().endswith(ENDINGS) or os.path.isfile(locate(first)) else "texts"
    return "pictures" if of == "pictures" else "texts"
