"""Explanation of a forecast: attention by lag and by variable, beside what the forecast loses when each is masked.

The weight of a lag says where a network looked, and not what it used. So each segment of lags and each variable is masked
too, after the statistics of the window are taken, and the change of the forecast is measured:

    effect_s = mean_{h,c} |ŷ_{hc}(x) - ŷ_{hc}(x without s)|        in deviations of the training rows

`agreement` is Spearman's rank correlation of the two over segments: near 1 where the network used what it looked at.
Jain and Wallace 2019, https://arxiv.org/abs/1902.10186, show why attention has to be checked in this way.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard import io
from regard.data.series.batch import SeriesSource
from regard.data.series.calendar import format_times
from regard.data.series.codec import SeriesCodec
from regard.data.series.windows import Window, collate
from regard.tasks.forecast.model import Forecaster, Looks, original_scale

Array = NDArray[np.float64]
MOST_SEGMENTS = 24
"""Most segments of lags that are masked one after the other."""


class Explanation(NamedTuple):
    """Reasons of the forecast of one series."""

    series: str
    segments: tuple[tuple[int, int], ...]
    """First and last lag of each segment, 1 for the last step of the look-back; the longest lag comes first."""
    times: tuple[str, ...]
    """Time at which each segment begins."""
    effects: Array
    """Effect of masking each segment."""
    step_effects: Array
    """Value for each step of the horizon: (horizon, segments)."""
    attention: Array | None
    """Weight of each segment, which sum to 1; None where a network has no attention over time."""
    step_attention: Array | None
    """Value for each step of the horizon, where each attends for itself: (horizon, segments)."""
    variables: tuple[str, ...]
    variable_effects: Array
    """Effect of masking each variable on each target: (targets, variables)."""
    variable_attention: Array | None
    """Weight of each variable for each target, which sum to 1: (targets, variables)."""

    @property
    def agreement(self) -> float | None:
        """Rank correlation of attention and effect over segments; None without attention."""
        return None if self.attention is None else rank_correlation(self.attention, self.effects)

    @property
    def variable_agreement(self) -> float | None:
        """Rank correlation of attention and effect over pairs of target and variable; None without such attention."""
        if self.variable_attention is None:
            return None
        return rank_correlation(self.variable_attention.ravel(), self.variable_effects.ravel())

    def to_dict(self, targets: Sequence[str]) -> dict[str, Any]:
        """The explanation as JSON has it."""
        lags = [
            {"lags": list(segment), "from": time, "effect": float(effect), "attention": weight}
            for segment, time, effect, weight in zip(
                self.segments, self.times, self.effects, _numbers(self.attention, len(self.segments)), strict=True
            )
        ]
        weights = self.variable_attention
        variables = [
            {
                "variable": name,
                "effect": {target: float(self.variable_effects[row, place]) for row, target in enumerate(targets)},
                "attention": None
                if weights is None
                else {target: float(weights[row, place]) for row, target in enumerate(targets)},
            }
            for place, name in enumerate(self.variables)
        ]
        steps = {
            "effect": self.step_effects.tolist(),
            "attention": None if self.step_attention is None else self.step_attention.tolist(),
        }
        return {
            "series": self.series,
            "by_lag": lags,
            "by_step": steps,
            "by_variable": variables,
            "agreement": self.agreement,
            "variable_agreement": self.variable_agreement,
        }


def explain(model: Forecaster, window: Window, codec: SeriesCodec) -> Explanation:
    """Explanation of the forecast of one window."""
    batch = collate([window], codec.look_back, codec.horizon).to(next(model.parameters()).device)
    source, steps = batch.source, codec.look_back
    bounds = segment_bounds(steps, step_of(model))
    names = [*codec.names.target, *codec.past_names, *codec.known_names]
    with torch.no_grad():
        whole = model(source, weights=True)
        masked = model(*mask_parts(source, bounds))
    scale = original_scale(source)
    point = model.output.point(whole.parameters.float(), scale)
    points = model.output.point(masked.parameters.float(), original_scale(source.select_rows([0] * len(masked.parameters))))
    changes = (points - point).abs().double().cpu().numpy()  # (parts, horizon, targets)
    by_segment, by_variable = changes[: len(bounds)], changes[len(bounds) :]
    looks = whole.looks or {}
    weights = attention_by_step(looks, model, steps)
    grouped = None if weights is None else np.stack([weights[:, first:last].sum(1) for first, last in bounds], 1)
    times = codec.axis(window).times
    return Explanation(
        series=window.record.id,
        segments=tuple((steps - first, steps - last + 1) for first, last in bounds),
        times=tuple(format_times(times[[first for first, _ in bounds]].astype(window.record.times.dtype))),
        effects=by_segment.mean((1, 2)),
        step_effects=by_segment.mean(2).T,
        attention=None if grouped is None else grouped.mean(0),
        step_attention=grouped if grouped is not None and len(grouped) == codec.horizon else None,
        variables=tuple(names),
        variable_effects=by_variable.mean(1).T,
        variable_attention=attention_by_variable(looks, len(codec.names.target), len(names)),
    )


def step_of(model: Forecaster) -> int:
    """Steps that a network reads together: the stride of its patches."""
    return int(getattr(model.network, "stride", 1))


def segment_bounds(steps: int, unit: int) -> list[tuple[int, int]]:
    """Segments of a look-back, each of whole units: first step, and the one after the last."""
    size = unit * max(1, -(-steps // (unit * MOST_SEGMENTS)))
    cuts = [*range(steps, 0, -size), 0][::-1]
    return list(pairwise(cuts))


def mask_parts(
    source: SeriesSource, bounds: Sequence[tuple[int, int]]
) -> tuple[SeriesSource, None, None, float, bool, Tensor]:
    """Copies of a window, each with one segment or one variable masked: arguments of a forecaster."""
    targets, past, known = source.data.shape[2], source.past.shape[2], source.known.shape[2]
    rows = len(bounds) + targets + past + known
    copies = source.select_rows([0] * rows)
    hidden = torch.zeros_like(copies.observed)
    for row, (first, last) in enumerate(bounds):
        hidden[row, first:last] = True
    row = len(bounds)
    for column in range(targets):
        hidden[row + column, :, column] = True
    for column in range(past):
        copies.past[row + targets + column, :, column] = 0
    for column in range(known):
        copies.known[row + targets + past + column, :, column] = 0
    return copies, None, None, 0.0, False, hidden


def attention_by_step(looks: Looks, model: Forecaster, steps: int) -> Array | None:
    """Weights over the steps of a look-back, of each step of the horizon or of the forecast as a whole."""
    chosen = [look for look in looks.values() if look.key in ("look-back", "patches")]
    direct = [look for look in chosen if look.query == "horizon"]
    if not chosen:
        return None
    rows = []
    for look in direct or chosen:
        weights = look.weights[0].float().mean(0).double().cpu().numpy()  # the mean of the heads
        weights = weights if look.query == "horizon" else weights.mean(0, keepdims=True)
        rows.append(spread_patches(weights, model, steps) if look.key == "patches" else weights)
    total: Array = np.mean(rows, 0)
    return total / np.maximum(total.sum(1, keepdims=True), 1e-12)


def spread_patches(weights: Array, model: Forecaster, steps: int) -> Array:
    """Weights of patches as weights of the steps that they cover."""
    network: Any = model.network
    spread = np.zeros((len(weights), steps))
    for patch in range(weights.shape[1]):
        first = patch * network.stride
        last = min(first + network.length, steps)
        spread[:, first:last] += weights[:, patch, None] / (last - first)
    return spread


def attention_by_variable(looks: Looks, targets: int, variables: int) -> Array | None:
    """Weights between variables, of each target: the mean of all layers and heads; None without such an attention."""
    rows = []
    for look in looks.values():
        if look.key == "variables":
            weights = look.weights[0].float().mean(0).double().cpu().numpy()
            weights = weights[:targets] if look.query == "variables" else np.repeat(weights.mean(0)[None], targets, 0)
            rows.append(np.pad(weights, ((0, 0), (0, variables - weights.shape[1]))))
    if not rows:
        return None
    total: Array = np.mean(rows, 0)
    return total / np.maximum(total.sum(1, keepdims=True), 1e-12)


def rank_correlation(left: Array, right: Array) -> float:
    """Spearman's rank correlation; ties have their mean rank, and 0 where one side is constant."""
    ranks = [rank_with_ties(side) for side in (left, right)]
    centred = [side - side.mean() for side in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum() / size) if size > 0 else 0.0


def rank_with_ties(values: Array) -> Array:
    """Rank of each value, from 0."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Array = (last - counts + last - 1) / 2
    return means[places]


def write_json(path: Path, explanations: Sequence[Explanation], targets: Sequence[str] = ()) -> None:
    """Write explanations as JSON."""
    table = [explanation.to_dict(targets) for explanation in explanations]
    io.write(path, json.dumps(table, indent=1, ensure_ascii=False).encode() + b"\n")


def _numbers(values: Array | None, count: int) -> list[float | None]:
    return [None] * count if values is None else [float(value) for value in values]
