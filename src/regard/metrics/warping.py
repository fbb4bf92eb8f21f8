"""Dynamic time warping: the cheapest way to go through two sequences together, and distances along it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor


class WarpingPath(NamedTuple):
    """Pairs of places, one after the other, from the first of both sequences to the last of both."""

    rows: Int[np.ndarray, " pairs"]
    columns: Int[np.ndarray, " pairs"]
    cost: float
    """Sum of the costs of the pairs."""


def warp(costs: Float[Tensor, "rows columns"]) -> WarpingPath:
    """The cheapest path through a table of costs, in steps of one row, one column, or both.

        D(i, j) = c(i, j) + min(D(i-1, j-1), D(i-1, j), D(i, j-1))

    Sakoe and Chiba 1978, https://doi.org/10.1109/TASSP.1978.1163055, without slope constraints. Of equal ways the diagonal
    is taken. Computed by antidiagonals: time O(rows columns) in rows + columns operations of NumPy.
    """
    rows, columns = costs.shape
    if not rows or not columns:
        raise ValueError(f"warping needs one place or more on both sides, got {rows} and {columns}")
    table = costs.detach().double().cpu().numpy()
    totals = np.full((rows + 1, columns + 1), np.inf)
    totals[0, 0] = 0.0
    for antidiagonal in range(2, rows + columns + 1):
        i = np.arange(max(1, antidiagonal - columns), min(rows, antidiagonal - 1) + 1)
        j = antidiagonal - i
        before = np.minimum(totals[i - 1, j - 1], np.minimum(totals[i - 1, j], totals[i, j - 1]))
        totals[i, j] = table[i - 1, j - 1] + before
    return _trace_back(totals)


def _trace_back(totals: NDArray[np.float64]) -> WarpingPath:
    i, j = totals.shape[0] - 1, totals.shape[1] - 1
    cost, pairs = float(totals[i, j]), []
    while i and j:
        pairs.append((i - 1, j - 1))
        i, j = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda place: totals[place])
    rows, columns = np.array(pairs[::-1]).T
    return WarpingPath(rows, columns, cost)


def warp_distance(first: Float[Tensor, "frames dim"], second: Float[Tensor, "others dim"]) -> WarpingPath:
    """The path of least summed Euclidean distance between two sequences of vectors."""
    return warp((first.double()[:, None] - second.double()[None]).norm(dim=-1))
