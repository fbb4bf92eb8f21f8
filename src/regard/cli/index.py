"""Make an index for a model of retrieve to search: regard index; and let predict search it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard import io
from regard.cli import Command, app
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.data.records import Record
    from regard.inference.predictor import Predictor
    from regard.tasks.retrieve.index import Kind
    from regard.tasks.retrieve.predictor import Retriever

LISTED = 10
"""How many entries that cannot be read are listed."""
ENDING = ".safetensors"


@app.command(cls=Command, short_help="Make an index of pictures or texts to search.")
def index(
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train retrieve` made.", metavar="DIR")],
    file: Annotated[str, typer.Option(help="A list or a table with a picture's path or a text on each line.")],
    out: Annotated[Path, typer.Option(help="Write the index here: NAME.safetensors.")],
    of: Annotated[
        str, typer.Option(help="What is on the lines: pictures, texts, or auto: what the first line looks like.")
    ] = "auto",
    column: Annotated[str, typer.Option(help="Which column of a table: its name, or its number from 1.")] = "1",
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
) -> None:
    """Make an index of pictures or of texts, for `regard predict --index` to search.

    Paths count from the folder of the list, as in tables to train on. What is there twice is taken once. If anything cannot
    be read, its line is named and nothing is written. An index is for the model that made it.

    \b
    Example:
        regard index run/ --file pictures.txt --out pictures.safetensors
        regard index run/ --file test.tsv --column 2 --of texts --out texts.safetensors
        regard predict run/ "a red heart" --index pictures.safetensors --nbest 10
    """
    if of not in ("auto", "pictures", "texts"):
        raise ConfigError(f"--of needs to be pictures, texts or auto, got {of!r}")
    _writable(out)
    from regard.inference.load import load
    from regard.tasks.retrieve.predictor import Retriever

    model = load(directory, device)
    if not isinstance(model, Retriever):
        raise ConfigError(f"an index is for models of retrieve, and {directory} is a run of {model.name}")
    records, twice = _once(file, column)
    kind = _kind(records, of)
    _readable(model, records, kind)
    made = model.indexed(records, kind)
    made.save(out)
    again = f", {twice:,} more were there already" * (twice > 0)
    typer.echo(f"{out}: {len(made):,} {kind}{again} ({out.stat().st_size:,} bytes)")


def searches(model: "Predictor", index: Path | None) -> None:
    """Let a model of `retrieve` search an index; for every other there is none."""
    if index is None:
        return
    from regard.tasks.retrieve.predictor import Retriever

    if not isinstance(model, Retriever):
        raise ConfigError(f"--index is for models of retrieve, and this one is of {model.name}; leave it out")
    model.among(index)


def _writable(path: Path) -> None:
    """Refuse a name that no index can be written to, before anything is computed."""
    if path.suffix != ENDING:
        raise ConfigError(f"an index is a file called NAME{ENDING}, got {path.name!r}; name it so")
    io.check_target(path)


def _once(file: str, column: str) -> "tuple[list[Record], int]":
    """Each entry of a list once, in its order, and how many were there again."""
    from regard.data import table

    every = [each._replace(target=None) for each in table.read(file, column, column)]
    once = list({each.source: each for each in reversed(every)}.values())[::-1]
    return once, len(every) - len(once)


def _kind(records: "Sequence[Record]", of: str) -> "Kind":
    """What is on the lines: as is said or, unless it is, pictures where the first is called as one or is a file."""
    from regard.data.records import locate
    from regard.tasks.retrieve.predictor import ENDINGS

    if of == "auto":
        first = records[0]
        of = "pictures" if first.source.lower().endswith(ENDINGS) or os.path.isfile(locate(first)) else "texts"
    return "pictures" if of == "pictures" else "texts"


def _readable(model: "Retriever", records: "Sequence[Record]", kind: "Kind") -> None:
    """Raise where entries cannot be read, and list the first of them with their lines."""
    from regard.data.image.reading import present, size
    from regard.data.records import locate

    faults = []
    if kind == "pictures":
        present(records)
    for each in records:
        if kind == "texts" and not model.codec.familiar(each.source):
            faults.append(f"{each.where} has nothing that the model knows, or is longer than what it reads")
        elif kind == "pictures":
            try:
                size(locate(each), each.where)
            except DataError as error:
                faults.append(str(error))
    if faults:
        more = f"; and {len(faults) - LISTED:,} more" * (len(faults) > LISTED)
        raise DataError(f"{len(faults):,} of {len(records):,} {kind} cannot be read: {'; '.join(faults[:LISTED])}{more}")
