"""Score of the Numenta Anomaly Benchmark (NAB): early detections in labelled windows, false alarms, misses.

Lavin and Ahmad 2015, https://arxiv.org/abs/1510.03336, section II. The best of all flags in a window counts, by how early
it is; a flag outside of windows costs more the further it is behind the last one; a window without a flag costs its weight:

    score = Σ_windows (A_TP σ(y) / σ(-1), or -A_FN) + Σ_false alarms A_FP σ(y)        σ(y) = 2 / (1 + e^{5 y}) - 1

with y from -1 at the beginning of a window to 0 at its end, and above 0 behind it. A corpus is scored from 0 (no flag at
all) to 100 (a flag at the beginning of each window and no other).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PROBATION, PROBATION_ROWS = 0.15, 750
"""Share of a file, and rows of it at most, in which a detector warms up and no flag counts."""
FAR = 3.0
"""Widths of a window beyond which a false alarm costs its whole weight."""


class Profile(NamedTuple):
    """Weights of a true positive, of a false positive and of a false negative."""

    true_positive: float
    false_positive: float
    false_negative: float


PROFILES = {
    "standard": Profile(1.0, 0.11, 1.0),
    "reward_low_FP_rate": Profile(1.0, 0.22, 1.0),
    "reward_low_FN_rate": Profile(1.0, 0.11, 2.0),
}


class File(NamedTuple):
    """Scores of one file, and the first and last row of each of its labelled windows."""

    scores: NDArray[np.floating]
    windows: Sequence[tuple[int, int]]


class Result(NamedTuple):
    """Score of a corpus, from 0 for no flags to 100 for perfect ones, and the threshold of its flags."""

    score: float
    threshold: float


class _Events(NamedTuple):
    """Rows by falling score, with what each changes once it is flagged."""

    scores: NDArray[np.float64]
    windows: NDArray[np.int64]
    """Number of the window of each row, -1 outside of all windows."""
    values: NDArray[np.float64]
    total: int


def probation_rows(rows: int) -> int:
    """Rows at the beginning of a file whose flags do not count."""
    return min(math.floor(PROBATION * rows), math.floor(PROBATION * 5000))


def score_corpus(files: Sequence[File], threshold: float, profile: Profile = PROFILES["standard"]) -> float:
    """Score of flags where scores reach one threshold for the whole corpus."""
    events = _collect(files, profile)
    raw = _raw_scores(events, profile)
    flagged = int(np.searchsorted(-events.scores, -threshold, side="right"))
    return _normalise(raw[flagged], events, profile)


def optimise_threshold(files: Sequence[File], profile: Profile = PROFILES["standard"]) -> Result:
    """Highest score over all thresholds: as the scoreboard of NAB chooses it, with the labels that it scores."""
    events = _collect(files, profile)
    raw = _raw_scores(events, profile)
    ends = np.append(np.flatnonzero(np.diff(events.scores)) + 1, len(events.scores))  # equal scores are flagged together
    candidates = np.append(0, ends)
    best = int(candidates[np.argmax(raw[candidates])])
    threshold = float(events.scores[best - 1]) if best else math.inf
    return Result(_normalise(raw[best], events, profile), threshold)


def _collect(files: Sequence[File], profile: Profile) -> _Events:
    scores, windows, values, count = [], [], [], 0
    for file in files:
        first = probation_rows(len(file.scores))
        number = np.full(len(file.scores), -1)
        value = np.full(len(file.scores), -profile.false_positive)
        for start, end in sorted(file.windows):
            width = end - start + 1
            behind = np.arange(end + 1, len(file.scores))
            value[behind] = profile.false_positive * _sigmoid((behind - end) / max(1, width - 1))
            inside = np.arange(start, end + 1)
            value[inside] = profile.true_positive * _sigmoid((inside - end - 1) / width) / _sigmoid(np.array(-1.0))
            number[inside] = count
            count += 1
        scores.append(np.asarray(file.scores[first:], np.float64))
        windows.append(number[first:])
        values.append(value[first:])
    joined = np.concatenate(scores)
    order = np.argsort(-joined, kind="stable")
    return _Events(joined[order], np.concatenate(windows)[order], np.concatenate(values)[order], count)


def _raw_scores(events: _Events, profile: Profile) -> NDArray[np.float64]:
    """Raw score when the first n rows by falling score are flagged, for each n from 0."""
    change = np.where(events.windows < 0, events.values, 0.0)
    best = np.full(events.total, -np.inf)
    for row in np.flatnonzero(events.windows >= 0):
        window, value = events.windows[row], events.values[row]
        if np.isinf(best[window]):
            change[row] = profile.false_negative + value
        elif value > best[window]:
            change[row] = value - best[window]
        best[window] = max(best[window], value)
    return np.append(0.0, np.cumsum(change)) - events.total * profile.false_negative


def _normalise(raw: float, events: _Events, profile: Profile) -> float:
    null = -events.total * profile.false_negative
    perfect = events.total * profile.true_positive
    return float(100 * (raw - null) / (perfect - null))


def _sigmoid(position: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 1 far before the end of a window through 0 at the end to -1 far behind it."""
    value = 2 / (1 + np.exp(5 * np.clip(position, -FAR, FAR))) - 1
    scaled: NDArray[np.float64] = np.where(position > FAR, -1.0, value)
    return scaled
