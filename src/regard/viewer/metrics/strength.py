"""Strength of an attention over time: curves of each head, and summary statistics.

The curves themselves are defined in `curves.py`, and can be taken from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from regard.data.axis import Array, Axis
from regard.viewer.metrics.alignment import of_heads
from regard.viewer.metrics.curves import (
    away,
    baseline,
    diagonal,
    entropy,
    focus,
    mean,
    over,
    received,
    sharpness,
    sink,
    sinks,
)
from regard.viewer.trace import AttentionMap, Links

__all__ = ["Statistics", "baseline", "entropy", "focus", "received", "sharpness", "sink", "sinks", "summary"]

BY_QUERY = ("largest", "effective", "focus", "spread", "sink")
RECORDED = {"largest": "max", "focus": "mean_position", "spread": "spread", "sums": "received", "baseline": "uniform"}
"""Names of the curves among the statistics of `regard.attention.statistics`."""
BLOCK = 32
"""Rows that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the heads of an attention: curves along keys and queries, and one number of each kind per head.

    `received` is (heads, keys), `baseline` (keys,): the mean over heads where each has its own mask; the others are (heads,
    queries), NaN at queries that were not recorded. `sinks` are the keys that `sink` counts. `entropy`, `mass`, `distance`
    and `diagonality`, (heads,), are means over queries, and `alignment` is the error against gold links; NaN where what was
    recorded does not tell.
    """

    received: Array
    baseline: Array
    largest: Array
    effective: Array
    focus: Array
    spread: Array
    sink: Array
    sinks: tuple[int, ...]
    entropy: Array
    mass: Array
    distance: Array
    diagonality: Array
    alignment: Array

    @property
    def curves(self) -> dict[str, Array]:
        """The curves by name, float32."""
        return {name: np.asarray(getattr(self, name), np.float32) for name in ("received", "baseline", *BY_QUERY)}

    @property
    def numbers(self) -> dict[str, list[float | None]]:
        """One number of each kind per head; None where it is not known."""
        metrics = {"entropy": self.entropy, "sink": self.mass, "distance": self.distance, "diagonality": self.diagonality}
        metrics["alignment"] = self.alignment
        return {name: [float(one) if np.isfinite(one) else None for one in values] for name, values in metrics.items()}


def summary(attention_map: AttentionMap, axes: Mapping[str, Axis], gold: Links | None = None) -> Statistics:
    """Every curve and number of a look. What was measured while the model ran is taken before what is computed here."""
    if attention_map.weights is None and not attention_map.statistics:
        raise ValueError(
            f"the attention {attention_map.name!r} recorded neither weights nor statistics: there is nothing to sum up"
        )
    queries, keys = len(axes[attention_map.query]), len(axes[attention_map.key])
    special = sinks(axes[attention_map.key])
    statistics = _computed(attention_map, queries, special) | _recorded(attention_map, queries, keys)
    heads = len(next(iter(statistics.values())))
    sums, base = (statistics.get(name, np.full((heads, keys), np.nan)) for name in ("sums", "baseline"))
    curves = {name: statistics.get(name, np.full((heads, queries), np.nan)) for name in BY_QUERY}
    reads = curves["effective"] > 0  # False where not recorded
    known = np.where(np.isnan(curves["effective"]).all(-1), np.nan, 1.0)  # of a head; a mean over nothing is no number
    away = np.abs(curves["focus"] - diagonal(queries, keys))
    error = of_heads(attention_map, axes, gold)
    return Statistics(
        received=over(sums, base),
        baseline=base.mean(0),
        **curves,
        sinks=special,
        entropy=known * mean(np.log(np.where(reads, curves["effective"], 1)), reads),
        mass=known
        * (over(sums[:, special].sum(-1), reads.sum(-1)) if attention_map.sums_to_one else mean(curves["sink"], reads)),
        distance=known * mean(away, reads),
        diagonality=statistics.get("diagonality", np.full(heads, np.nan)),
        alignment=np.full(heads, np.nan) if error is None else error,
    )


def _computed(attention_map: AttentionMap, queries: int, special: tuple[int, ...]) -> dict[str, Array]:
    """Statistics from the weights, one head at a time: many heads of long sequences are never held in float64 together."""
    if attention_map.weights is None:
        return {}
    rows = list(range(queries) if attention_map.rows is None else attention_map.rows)
    allowed = attention_map.allowed
    if allowed is not None and allowed.shape[-2] == queries:  # else it already has the recorded rows alone
        allowed = allowed[..., rows, :]
    base = np.broadcast_to(baseline(allowed, len(rows), attention_map.weights.shape[2]), attention_map.weights.shape[::2])
    statistics: dict[str, list[Array]] = {name: [] for name in ("sums", "diagonality", *BY_QUERY)}
    for weights in attention_map.weights:
        one = _head(weights, diagonal(queries, weights.shape[1])[rows], special)
        one["diagonality"] = np.asarray(1 - mean(one["away"], one["effective"] > 0))
        for name, values in statistics.items():
            values.append(_placed(one[name], rows, queries) if name in BY_QUERY else one[name])
    return {name: np.stack(values) for name, values in statistics.items()} | {"baseline": base}


def _head(weights: Array, places: Array, special: tuple[int, ...]) -> dict[str, Array]:
    """The curves of one matrix, some rows at a time, so that they stay in the cache: several times as fast."""
    statistics: dict[str, list[Array]] = {}
    for first in range(0, len(weights), BLOCK):
        block = np.asarray(weights[first : first + BLOCK], np.float64)
        sharp, centre = sharpness(block), focus(block)
        curves = (*sharp, *centre, sink(block, special), away(block, places[first : first + BLOCK]))
        for name, curve in zip((*BY_QUERY, "away"), curves, strict=True):
            statistics.setdefault(name, []).append(curve)
        statistics.setdefault("sums", []).append(block.sum(0))
    sums = np.sum(statistics.pop("sums"), axis=0)
    return {name: np.concatenate(parts) for name, parts in statistics.items()} | {"sums": sums}


def _recorded(attention_map: AttentionMap, queries: int, keys: int) -> dict[str, Array]:
    """Statistics that were recorded while the model ran, by the names used here."""
    measured = {name: np.asarray(values, np.float64) for name, values in attention_map.statistics.items()}
    statistics = {name: measured[recorded] for name, recorded in RECORDED.items() if recorded in measured}
    if "entropy" in measured:
        statistics["effective"] = np.exp(measured["entropy"])
        if "max" in measured:  # a query that reads nothing has an entropy of 0, as if it read one key
            statistics["effective"] = np.where(measured["max"] > 0, statistics["effective"], 0.0)
    if "sums" in statistics:  # a baseline may be one for all heads
        even = statistics.get("baseline", baseline(attention_map.allowed, queries, keys))
        statistics["baseline"] = np.broadcast_to(even, statistics["sums"].shape)
    return statistics


def _placed(values: Array, rows: list[int], queries: int) -> Array:
    placed = np.full(queries, np.nan)
    placed[rows] = values
    return placed
