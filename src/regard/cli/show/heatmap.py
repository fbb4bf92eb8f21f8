"""A heat map in characters: what was linked to what, in a terminal."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from regard.cli.show.table import columns

SHADES = " ░▒▓█"
"""From nothing to all; a weight falls into one of five equal bins, so that half of the attention is ▒."""


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
