"""Colour tables of 256 entries, the same bytes in the page and in figures.

    cividis     the default: even in luminance, nearly the same to readers who see fewer colours
    viridis, magma, greys
    balance     two-sided, blue to white to orange, for differences: 127 and 128 are white, both sides equally dark
    okabe_ito   eight colours for categories, again and again; never without a label or a dash as well

They lie in static/palettes.json. `python -m regard.viewer.palettes` writes that file anew, from matplotlib.
"""

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FILE = Path(__file__).parent / "static" / "palettes.json"
SIDES = (("#ffffff", "#9cc9ef", "#3f8fd0", "#0b4f8f", "#062a52"), ("#ffffff", "#f6b780", "#cf7129", "#7d3b07", "#442004"))
"""Blue and orange, from the middle outwards, of equal luminance at each step."""
OKABE_ITO = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#000000")
"""Okabe and Ito 2008, Color Universal Design, https://jfly.uni-koeln.de/color/"""

Table = npt.NDArray[np.uint8]


def names() -> tuple[str, ...]:
    """Every palette."""
    return tuple(encoded())


@cache
def encoded() -> dict[str, str]:
    """The tables as the page takes them: by name, base64 of 256 x RGB."""
    palettes: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return palettes


def table(name: str) -> Table:
    """One palette, (256, 3)."""
    if name not in encoded():
        raise ValueError(f"there is no palette {name!r}; there are {', '.join(names())}")
    return np.frombuffer(base64.b64decode(encoded()[name]), np.uint8).reshape(256, 3)


def make() -> dict[str, Table]:
    """The tables as they are made: matplotlib's own, and the two that are defined here."""
    from matplotlib import colormaps

    theirs = {"cividis": "cividis", "viridis": "viridis", "magma": "magma", "greys": "Greys"}
    palettes = {ours: _bytes(colormaps[name](np.arange(256))) for ours, name in theirs.items()}
    palettes["balance"] = _balance()
    palettes["okabe_ito"] = np.array([_colour(OKABE_ITO[place % 8]) for place in range(256)], np.uint8)
    return palettes


def write(path: Path = FILE) -> None:
    """Make the tables and write them down."""
    tables = {name: base64.b64encode(values.tobytes()).decode("ascii") for name, values in make().items()}
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


def _balance() -> Table:
    """Each side is 128 entries from white to its darkest colour."""
    along = np.linspace(0, 1, 128)
    blue, orange = (
        np.stack(
            [np.interp(along, np.linspace(0, 1, len(side)), channel) for channel in zip(*map(_colour, side), strict=True)], 1
        )
        for side in SIDES
    )
    return np.rint(np.concatenate([blue[::-1], orange])).astype(np.uint8)


def _colour(text: str) -> tuple[int, int, int]:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _bytes(colours: Any) -> Table:
    return np.rint(255 * np.asarray(colours)[:, :3]).astype(np.uint8)


if __name__ == "__main__":
    write()
