"""Where a data set lies, and how its pictures and tables are written: what the scripts beside this one share."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from regard import io


def given(name: str) -> tuple[Path, Path]:
    """The folder of a data set in REGARD_DATA, and OUT from the command line."""
    (out,) = arguments("OUT", before="REGARD_DATA=FOLDER ")
    where = os.environ.get("REGARD_DATA")
    if not where:
        sys.exit(f"REGARD_DATA: name the folder that holds {name}")
    source = Path(where) / name
    if not source.is_dir():
        sys.exit(f"REGARD_DATA: there is no folder {source}; name the folder that holds {name}")
    return source, out


def arguments(*names: str, before: str = "") -> list[Path]:
    """The paths on the command line, one for each name; anything else shows the usage and ends the script."""
    if len(sys.argv) != len(names) + 1 or any(each.startswith("-") for each in sys.argv[1:]):
        print(f"usage: {before}python {sys.argv[0]} {' '.join(names)}", file=sys.stderr)
        sys.exit(2)
    return [Path(each) for each in sys.argv[1:]]


def picture(out: Path, name: str, image: Image.Image) -> str:
    """Write pictures/NAME.png in `out`; what comes back is its path as a table there spells it."""
    spelt = f"pictures/{name}.png"
    (out / spelt).parent.mkdir(parents=True, exist_ok=True)
    image.save(out / spelt)
    return spelt


def table(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write a TSV. It comes after its pictures: where there is a table, there are all of them."""
    rows = list(rows)
    for number, row in enumerate(rows, 1):
        if any(set("\t\r\n") & set(cell) for cell in row):
            raise ValueError(
                f"a cell of {path}:{number} has a tab or the end of a line in it, which a TSV cannot hold: {row}"
            )
    lines(path, ("\t".join(row) for row in rows))


def lines(path: Path, texts: Iterable[str]) -> None:
    """Write a file line by line, and say how many there are."""
    content = [f"{text}\n" for text in texts]
    io.write(path, "".join(content).encode())
    print(f"{path}: {len(content):,} lines")
