"""Back-translation of monolingual targets: regard backtranslate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from regard import io
from regard.cli import Components, ModelCommand, app
from regard.data.lines import lines
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.inference.backtranslate import Pair, Way


@app.command(cls=ModelCommand, short_help="Back-translate monolingual targets.")
def backtranslate(
    directory: Annotated[
        Path, typer.Argument(help="A run of the reverse direction, from targets to sources.", metavar="REVERSE_RUN")
    ],
    file: Annotated[str | None, typer.Option(help="Targets, one on each line.  [default: standard input]")] = None,
    out: Annotated[Path | None, typer.Option(help="The table to write: NAME.tsv.")] = None,
    draw: Annotated[str, typer.Option(help="Decoding of sources: beam, sample, greedy.")] = "beam",
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size.  [default: 5]")] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Sampling temperature.  [default: 1]")] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Drop, blank and shuffle words of the sources.")] = False,
    tag: Annotated[str, typer.Option(help='Tag before each synthetic source, such as "<BT>".')] = "",
    append: Annotated[str | None, typer.Option(help="Real pairs to append: a table of source and target.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of sampling and noise.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    component: Components = None,
) -> None:
    """Back-translate targets with a model of the reverse direction, and write the pairs as a table to train on.

    The table has SOURCE TAB TARGET on each line and appears when it is whole. Targets whose source comes out empty, and
    those that are longer than the model reads, are left out and counted.

    \b
    Example:
        regard backtranslate reverse/ --file mono.txt --out synthetic.tsv --draw sample --tag "<BT>"
        regard train translate --data.train=real.tsv+synthetic.tsv --data.valid=valid.tsv --out run/
    """
    if out is None:
        raise ConfigError("backtranslate needs a table to write: --out NAME.tsv")
    if out.suffix != ".tsv":
        raise ConfigError(f"backtranslate writes columns between tabs, got {out.name!r}; name it NAME.tsv")
    io.check_target(out)
    way = _way(draw, beam, temperature, noise, tag, seed)
    real = [] if append is None else _real(append)  # before the model writes, which may take hours
    from regard.inference.backtranslate import backtranslate as translate
    from regard.inference.load import load_sequence_predictor

    model = load_sequence_predictor(directory, device)
    written, read = 0, 0
    with io.replacing(out) as table:
        for pairs in translate(model, lines(file or "-"), way):
            written, read = written + _write(table, out, pairs), read + len(pairs)
            if not quiet:
                typer.echo(f"{read:,} targets read · {written:,} pairs", err=True)
        if not written:
            raise DataError(f"{file or 'standard input'}: the model found a source for none of the {read:,} targets")
        _write(table, out, real)
    typer.echo(_summary(out, written, read - written, len(real)))


def _way(draw: str, beam: int | None, temperature: float | None, noise: bool, tag: str, seed: int) -> "Way":
    """Decoding options of the sources."""
    if draw not in ("beam", "sample", "greedy"):
        raise ConfigError(f"--draw needs to be beam, sample or greedy, got {draw!r}")
    if beam is not None and draw != "beam":
        raise ConfigError(f"--beam would change nothing: it needs --draw beam, got {draw}")
    if temperature is not None and draw != "sample":
        raise ConfigError(f"--temperature would change nothing: it needs --draw sample, got {draw}")
    if temperature == 0:
        raise ConfigError("--temperature 0 is greedy decoding: use --draw greedy")
    if len(tag.split()) > 1 or tag != tag.strip():
        raise ConfigError(f"--tag needs one word without spaces, got {tag!r}")
    from regard.inference.backtranslate import Way

    heat = 1.0 if temperature is None else temperature
    return Way(draw, beam or 5, heat, noise, tag, seed)


def _write(table: BinaryIO, out: Path, pairs: "list[Pair]") -> int:
    """Write the pairs that have a source; returns their number."""
    whole = [pair for pair in pairs if pair.source]
    with io.room(out):
        table.write("".join(f"{pair.source}\t{pair.target}\n" for pair in whole).encode())
    return len(whole)


def _real(path: str) -> "list[Pair]":
    """The real pairs to append."""
    from regard.data.table import read
    from regard.inference.backtranslate import Pair

    pairs = []
    for record in read(path):
        if any(mark in record.source + (record.target or "") for mark in "\t\n"):
            raise DataError(
                f"{record.where} has a tab or a line's end in it, which a table of tabs cannot hold; take it out"
            )
        pairs.append(Pair(record.source, record.target or ""))
    return pairs


def _summary(out: Path, written: int, empty: int, added: int) -> str:
    parts = [f"{written:,} pairs"]
    parts += [f"{empty:,} targets left out: no source, or longer than the model reads"] * (empty > 0)
    parts += [f"{added:,} real pairs appended"] * (added > 0)
    return f"{out}: {', '.join(parts)}"
