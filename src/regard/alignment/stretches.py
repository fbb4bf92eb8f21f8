"""Holes and loops: seconds of a sound that attention never read, and stretches that it read twice.

A recogniser that leaves out a sentence, or says one twice, writes fluent text all the same. Its attention tells: between two
steps it jumps over frames with sound in them (a hole), or it returns to frames that it had passed (a loop).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

LEAST = 0.5
"""Seconds of sound that a hole or a loop has at least."""


class Stretch(NamedTuple):
    """Seconds from `start` to `end`, and the step (token) before which it was left out or at which it was read again."""

    start: float
    end: float
    step: int


class Stretches(NamedTuple):
    """Stretches of a sound that a decoder left out, and those that it read more than once."""

    holes: tuple[Stretch, ...]
    loops: tuple[Stretch, ...]


def find_stretches(
    weights: Float[Tensor, "steps frames"],
    frame_seconds: float,
    *,
    activity: Bool[Tensor, " frames"] | None = None,
    least_hole: float = LEAST,
    least_loop: float = LEAST,
    reach: float = 0.15,
) -> Stretches:
    """Holes and loops of the path of an attention over frames.

    `activity` is True in frames with sound: silence that is not read is no hole. `reach` is what a step reads to either
    side of the frames between which the middle half of its attention is, in seconds; without frames or steps there are
    neither holes nor loops, except that a sound without any step is one hole.
    """
    spans = read_spans(weights, reach / frame_seconds)
    active = np.ones(weights.shape[1], bool) if activity is None else activity.cpu().numpy()
    holes = _find_holes(spans, active, frame_seconds, least_hole)
    return Stretches(holes, _find_loops(spans, active, frame_seconds, least_loop))


def read_spans(weights: Float[Tensor, "steps frames"], reach: float) -> NDArray[np.float64]:
    """First and last frame that each step reads: quartiles of its weights with `reach` frames around them, as (steps, 2).

    A single step that looks elsewhere than both its neighbours, which agree, reads where they do: a median of three.
    """
    table = weights.detach().double().cpu().numpy()
    if not table.size:
        return np.zeros((0, 2))
    shares = table.cumsum(1) / np.maximum(table.sum(1, keepdims=True), 1e-12)
    quartiles = np.stack([(shares < part).sum(1) for part in (0.25, 0.75)], 1).astype(np.float64)
    quartiles = np.minimum(quartiles, table.shape[1] - 1)
    if len(quartiles) > 2:
        quartiles[1:-1] = np.median(np.stack((quartiles[:-2], quartiles[1:-1], quartiles[2:])), 0)
    return quartiles + np.array([-reach, reach])


def _find_holes(
    spans: NDArray[np.float64], active: NDArray[np.bool_], frame_seconds: float, least: float
) -> tuple[Stretch, ...]:
    """Runs of frames that no step reads, trimmed to their sound, with enough of it."""
    frames = len(active)
    read = np.zeros(frames, bool)
    places = np.arange(frames)
    for first, last in spans:
        read |= (places >= first) & (places <= last)
    holes = []
    for first, last in _list_runs(~read):
        sounding = np.flatnonzero(active[first:last])
        if len(sounding) * frame_seconds >= least:
            start, end = first + sounding[0], first + sounding[-1] + 1
            step = int((spans[:, 0] < first).sum()) if len(spans) else 0
            holes.append(Stretch(float(start * frame_seconds), float(end * frame_seconds), step))
    return tuple(holes)


def _find_loops(
    spans: NDArray[np.float64], active: NDArray[np.bool_], frame_seconds: float, least: float
) -> tuple[Stretch, ...]:
    """Stretches between where a step returns to and where the path had been, until it passes that place again."""
    centres, loops, place = spans.mean(1), [], 1
    while place < len(centres):
        furthest = centres[:place].max()
        if furthest - centres[place] < least / frame_seconds:
            place += 1
            continue
        begin = place
        while place < len(centres) and centres[place] < furthest:
            place += 1
        start = int(max(0.0, spans[begin:place, 0].min()))
        end = int(min(spans[begin:place, 1].max(), spans[:begin, 1].max())) + 1
        if active[start:end].sum() * frame_seconds >= least and place - begin > 1:
            loops.append(Stretch(float(start * frame_seconds), float(end * frame_seconds), begin))
    return tuple(loops)


def _list_runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First place and the place after the last of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]
