"""Heat map of attention weights in characters, for a terminal."""

import unicodedata
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from regard.cli.show.table import columns

SHADES = " ░▒▓█"
"""Shades from 0 to 1: a weight falls into one of five equal bins, so that 0.5 is ▒."""


def heat(weights: Float[Tensor, "queries keys"], queries: Sequence[str], keys: Sequence[str]) -> str:
    """Queries down, keys across, a darker cell for a larger weight."""
    if weights.shape != (len(queries), len(keys)):
        raise ValueError(
            f"{tuple(weights.shape)} weights need as many words, got {len(queries)} queries and {len(keys)} keys"
        )
    rows = [["", *keys]]
    for query, row in zip(queries, weights.tolist(), strict=True):
        rows.append([query, *(2 * shade(weight) for weight in row)])
    return columns(rows, gap=" ")


def shade(weight: float) -> str:
    """The character for a weight between 0 and 1."""
    return SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]


ACROSS = 76
"""Width in characters of maps side by side."""


def places(weights: Float[Tensor, "queries places"], queries: Sequence[str], grid: tuple[int, int]) -> str:
    """A map below each query, its rows and columns as on the picture; the darkest place has the largest weight."""
    rows, columns = grid
    if weights.shape != (len(queries), rows * columns):
        raise ValueError(
            f"{tuple(weights.shape)} weights need as many words, and a map with as many places, got {len(queries)} queries "
            f"and {rows} x {columns} places"
        )
    maps = [_map(query, row, columns) for query, row in zip(queries, weights.tolist(), strict=True)]
    side = max(wide(line) for table in maps for line in table)
    many = max(1, ACROSS // (side + 2))
    return "\n\n".join(_beside(maps[first : first + many], side) for first in range(0, len(maps), many))


def _map(query: str, weights: Sequence[float], columns: int) -> list[str]:
    most = max(weights) or 1.0
    cells = [2 * shade(weight / most) for weight in weights]
    return [query, *("".join(cells[first : first + columns]) for first in range(0, len(cells), columns))]


def _beside(maps: Sequence[Sequence[str]], side: int) -> str:
    rows = zip(*maps, strict=True)
    return "\n".join("  ".join(line + " " * (side - wide(line)) for line in row).rstrip() for row in rows)


def wide(text: str) -> int:
    """The columns that a text takes in a terminal: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
