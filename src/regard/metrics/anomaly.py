"""Metrics of anomaly detection: VUS-PR and VUS-ROC, AUC-PR and AUC-ROC, F1, and F1 with point adjustment.

A score is higher where a detector is surer of an anomaly; a label is True where there is one. Point adjustment flatters: it
counts a whole anomaly as detected once any of its points is, so that random scores reach high values; it is there to be
printed beside that of random scores, and for nothing else.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
Labels = NDArray[np.bool_]
Segments = NDArray[np.int64]

THRESHOLDS = 250
"""Thresholds of the surfaces: as many as the authors of VUS take."""
DEFAULT_WINDOW, LAGS, SKIPPED_LAGS, LONGEST_PERIOD, ROWS = 125, 400, 3, 300, 20_000
"""Window of a series without a period, and the lags and rows of the autocorrelation in which a period is looked for."""


class Areas(NamedTuple):
    """Areas under the precision-recall curve and under the ROC curve."""

    pr: float
    roc: float


class Detection(NamedTuple):
    """Precision, recall and F1 of flags."""

    precision: float
    recall: float
    f1: float


def areas(scores: Scores, labels: Labels) -> Areas:
    """AUC-PR, as average precision, and AUC-ROC, over points; equal scores are one threshold.

    AUC-PR = Σ_n (r_n - r_{n-1}) p_n
    """
    _check(scores, labels)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # last index of each run of equal scores
    hits, count = np.cumsum(labels[order])[last], last + 1
    recall, precision = hits / labels.sum(), hits / count
    alarms = (count - hits) / (~labels).sum()
    return Areas(float(np.sum(np.diff(recall, prepend=0.0) * precision)), _trapezoid(alarms, recall))


def volumes(scores: Scores, labels: Labels, window: int) -> Areas:
    """VUS-PR and VUS-ROC: mean area under the range-based curves over all buffers from 0 to `window` points.

    A buffer of w points lets the label fall off on both sides of an anomaly that ends at e, up to w // 2 points away:

        label_w(e + d) = √(1 - d / w)        TP = Σ_t label_w(t) flag(t)        precision = TP / Σ_t flag(t)
        recall = min(1, TP / P_w) · (share of the anomalies with any flag)      P_w = (P + P + TP outside anomalies) / 2

    Paparrizos et al. 2022, https://doi.org/10.14778/3551793.3551830, sections 3.3 and 3.4. As in the authors' code, flags
    are those of 250 thresholds at equal ranks, and anomalies whose buffers touch count as one.
    """
    _check(scores, labels)
    if window < 0:
        raise ValueError(f"a buffer has at least 0 points, got {window}")
    order = np.argsort(-scores, kind="stable")
    ranks = np.linspace(0, len(scores) - 1, THRESHOLDS).astype(np.int64)
    thresholds = scores[order[ranks]]
    flagged = np.searchsorted(-scores[order], -thresholds, side="right")
    segments = find_segments(labels)
    results = [_area(scores, labels, segments, width, order, thresholds, flagged) for width in range(window + 1)]
    pr, roc = np.mean(np.array(results), 0).tolist()
    return Areas(pr, roc)


def _area(
    scores: Scores,
    labels: Labels,
    segments: Segments,
    window: int,
    order: NDArray[np.int64],
    thresholds: Scores,
    flagged: NDArray[np.int64],
) -> Areas:
    """Areas under the range-based curves of one buffer."""
    soft = soften_labels(labels, segments, window)
    positives = float(labels.sum())
    hits = np.cumsum(soft[order])[flagged - 1]
    outside = np.cumsum(np.where(labels, 0.0, soft)[order])[flagged - 1]
    highest = np.array([scores[first : last + 1].max() for first, last in _merge(segments, window // 2, len(labels))])
    existence = (highest[None] >= thresholds[:, None]).mean(1)
    mass = positives + outside / 2
    recall = np.minimum(hits / mass, 1) * existence
    alarms = (flagged - hits) / (len(labels) - mass)
    pr = float(np.sum(np.diff(recall, prepend=0.0) * hits / flagged))
    return Areas(pr, _trapezoid(np.append(alarms, 1.0), np.append(recall, 1.0)))


def soften_labels(labels: Labels, segments: Segments, window: int) -> NDArray[np.float64]:
    """Labels that fall off over half a window on both sides of each anomaly; where two overlap, they add up to at most 1."""
    soft = labels.astype(np.float64)
    distances = np.arange(1, window // 2 + 1)
    slope = np.sqrt(1 - distances / window) if window else np.zeros(0)
    for first, last in segments:
        after, before = last + distances, first - distances
        soft[after[after < len(soft)]] += slope[after < len(soft)]
        soft[before[before >= 0]] += slope[before >= 0]
    softened: NDArray[np.float64] = np.minimum(soft, 1)
    return softened


def find_segments(labels: Labels) -> Segments:
    """First and last point of each anomaly, as (anomalies, 2)."""
    edges = np.diff(np.concatenate(([False], labels, [False])).astype(np.int8))
    return np.stack((np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1), 1)


def _merge(segments: Segments, margin: int, length: int) -> list[tuple[int, int]]:
    """Segments with a margin on both sides; those that touch are one."""
    merged = list[tuple[int, int]]()
    for first, last in segments.tolist():
        start, end = max(first - margin, 0), min(last + margin, length - 1)
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def suggest_window(values: NDArray[np.floating]) -> int:
    """Window of VUS for a series: the lag of its highest local maximum of autocorrelation, 125 where there is none.

    As the authors of TSB-AD choose it: the first 20,000 rows, lags from 3 to 400, and a period of 3 to 300.
    """
    centred = np.asarray(values[:ROWS], np.float64) - np.mean(values[:ROWS])
    size = 1 << (2 * len(centred) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(power, size)[: min(LAGS, len(centred) - 1) + 1]
    if not correlation[0] > 0:
        return DEFAULT_WINDOW
    later = correlation[SKIPPED_LAGS:] / correlation[0]
    peaks = np.flatnonzero((later[1:-1] > later[:-2]) & (later[1:-1] > later[2:])) + 1
    if not len(peaks):
        return DEFAULT_WINDOW
    highest = int(peaks[np.argmax(later[peaks])])
    return highest + SKIPPED_LAGS if SKIPPED_LAGS <= highest <= LONGEST_PERIOD else DEFAULT_WINDOW


def detection(flags: Labels, labels: Labels) -> Detection:
    """Precision, recall and F1 over points."""
    hits = int((flags & labels).sum())
    precision = hits / max(1, int(flags.sum()))
    recall = hits / max(1, int(labels.sum()))
    return Detection(precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0)


def adjust_points(flags: Labels, labels: Labels) -> Labels:
    """Flags on all points of each anomaly that has a flag on any of them.

    Xu et al. 2018, https://arxiv.org/abs/1802.03903, section 4.2; Kim et al. 2022, https://arxiv.org/abs/2109.05257, show
    that random scores do well by it.
    """
    adjusted = flags.copy()
    for first, last in find_segments(labels):
        adjusted[first : last + 1] |= flags[first : last + 1].any()
    return adjusted


def best_f1(scores: Scores, labels: Labels) -> Detection:
    """F1 at the threshold that is best for it: an upper bound, which no detector reaches without the labels."""
    _check(scores, labels)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(labels[order])[last]
    f1 = 2 * hits / (last + 1 + labels.sum())
    return detection(scores >= scores[order[last[np.argmax(f1)]]], labels)


def best_adjusted_f1(scores: Scores, labels: Labels) -> Detection:
    """F1 with point adjustment at the threshold that is best for it: to be read beside that of random scores."""
    _check(scores, labels)
    segments = find_segments(labels)
    highest = np.array([scores[first : last + 1].max() for first, last in segments])
    sizes = segments[:, 1] - segments[:, 0] + 1
    thresholds = np.unique(np.append(highest, scores[~labels]))[::-1]
    by_height = np.argsort(-highest)
    detected = np.searchsorted(-highest[by_height], -thresholds, side="right")
    hits = np.concatenate(([0], np.cumsum(sizes[by_height])))[detected]
    alarms = np.searchsorted(np.sort(-scores[~labels]), -thresholds, side="right")
    best = thresholds[np.argmax(2 * hits / (hits + alarms + labels.sum()))]
    return detection(adjust_points(scores >= best, labels), labels)


def _trapezoid(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Area under a curve from (0, 0), point by point."""
    return float(np.sum(np.diff(x, prepend=0.0) * (y + np.append(0.0, y[:-1])) / 2))


def _check(scores: Scores, labels: Labels) -> None:
    if scores.shape != labels.shape or scores.ndim != 1:
        raise ValueError(f"scores and labels need one value for each point, got {scores.shape} and {labels.shape}")
    if not np.isfinite(scores).all():
        raise ValueError("scores need to be finite to be ranked, got NaN or infinity")
    if labels.all() or not labels.any():
        raise ValueError(
            f"a curve needs points with an anomaly and points without one, got {int(labels.sum())} of {len(labels)}"
        )
