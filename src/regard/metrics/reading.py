"""Metrics of how an attention reads a source that is to be read once from beginning to end: diagonality, skips, repeats.

Weights are (steps, keys): decoder steps by places of the source, with rows that sum to about one. All are of the path that
goes through the weights, so that they hold at any speed of reading.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

BAND = 0.1
"""Half the width of the band around the path, as a share of the source's length."""
LEAST = 0.5
"""Attention, in steps, below which a unit that the path jumps over counts as skipped."""
AGAIN = 2
"""Steps that a return to an earlier unit lasts at least to count as a repetition."""


class Reading(NamedTuple):
    """Numbers of the units of a source that were left out, or read more than once."""

    skipped: tuple[int, ...]
    repeated: tuple[int, ...]


def find_forward_path(weights: Float[Tensor, "steps keys"]) -> Int[np.ndarray, " steps"]:
    """The best monotonic path: the key of each step, never before that of an earlier step, with the most attention in all.

    argmax over p_1 ≤ p_2 ≤ ... ≤ p_T of Σ_t a(t, p_t)
    """
    table = _read_table(weights)
    totals = np.empty_like(table)
    best = np.zeros(table.shape[1])
    for step, row in enumerate(table):
        totals[step] = best + row
        best = np.maximum.accumulate(totals[step])
    path = np.empty(len(table), dtype=np.int64)
    last = table.shape[1]
    for step in range(len(table) - 1, -1, -1):
        path[step] = totals[step, :last].argmax()
        last = int(path[step]) + 1
    return path


def measure_diagonality(weights: Float[Tensor, "steps keys"], band: float = BAND) -> float:
    """Share of the attention within `band` of the source's length around the best monotonic path: 1 reads straight on.

    (Σ_t Σ_{|s - p_t| ≤ band S} a(t, s)) / Σ_t Σ_s a(t, s)
    """
    table, path = _read_table(weights), find_forward_path(weights)
    near = np.abs(np.arange(table.shape[1])[None] - path[:, None]) <= band * table.shape[1]
    total = float(table.sum())
    return float(table[near].sum()) / total if total else 0.0


def find_misreadings(weights: Float[Tensor, "steps keys"], members: Bool[Tensor, "units keys"]) -> Reading:
    """Units (words) that were skipped, and those that were read again after a later one.

    A unit is skipped if the best monotonic path has no step in it and it received less attention than half a step. It is
    repeated if, after two steps or more in later units, two or more successive steps attend most to it: by the largest
    weight of each step among units, so that a path that only moves forward does not hide it.
    """
    table, owner = _read_table(weights), members.cpu().numpy()
    by_unit = table @ owner.T.astype(np.float64)  # steps units
    units = range(owner.shape[0])
    on_path = np.atleast_1d(owner[:, np.unique(find_forward_path(weights))].any(1))
    skipped = tuple(unit for unit in units if not on_path[unit] and by_unit[:, unit].sum() < LEAST)
    return Reading(skipped, _find_repeated(by_unit) if owner.shape[0] else ())


def _find_repeated(by_unit: NDArray[np.float64]) -> tuple[int, ...]:
    """Units whose runs come after a later unit was reached; runs shorter than AGAIN steps count for nothing."""
    owners = by_unit.argmax(1)[by_unit.max(1) > 0.0]
    bounds = np.flatnonzero(np.diff(owners)) + 1
    runs = [run for run in np.split(owners, bounds) if len(run) >= AGAIN]
    repeated, furthest = set[int](), -1
    for run in runs:
        unit = int(run[0])
        if unit < furthest:
            repeated.add(unit)
        furthest = max(furthest, unit)
    return tuple(sorted(repeated))


def _read_table(weights: Tensor) -> NDArray[np.float64]:
    table: NDArray[np.float64] = weights.detach().double().cpu().numpy()
    if not table.size:
        raise ValueError(f"a path goes through one step and one key or more, got weights of {tuple(weights.shape)}")
    return table
