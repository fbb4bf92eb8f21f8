"""Thresholds of alarms from scores without labels: a quantile, or extreme value theory (peaks over threshold)."""

import math

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
TAIL = 0.02
"""Share of the scores that are peaks; at least LEAST of them are needed for the tail to be fitted."""
LEAST = 10


def choose_threshold(scores: Scores, method: str, rate: float) -> float:
    """Threshold that a share `rate` of normal scores may reach; nothing but the scores of held-out rows is read."""
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return math.inf
    return peaks_over_threshold(scores, rate) if method == "pot" else above(scores, float(np.quantile(scores, 1 - rate)))


def peaks_over_threshold(scores: Scores, rate: float) -> float:
    """Threshold of a tail probability by a generalised Pareto distribution of the peaks over a high quantile t.

        z = t + σ / γ · ((rate · n / peaks)^-γ - 1)        γ = 0:  z = t - σ log(rate · n / peaks)

    Siffer et al. 2017, equation 1, https://doi.org/10.1145/3097983.3098144. Unlike the paper, γ and σ are those of the
    method of moments, limited to |γ| <= 1/2, as a maximum of the likelihood need not exist for a few peaks. A rate above the
    share of the peaks is the quantile itself.
    """
    start = float(np.quantile(scores, 1 - TAIL))
    peaks = scores[scores > start] - start
    if rate >= TAIL or len(peaks) < LEAST:
        return above(scores, float(np.quantile(scores, 1 - rate)))
    mean, variance = float(peaks.mean()), float(peaks.var())
    ratio = mean**2 / max(variance, 1e-12 * mean**2)
    shape = float(np.clip((1 - ratio) / 2, -0.5, 0.5))
    scale = mean * (1 - shape)
    share = rate * len(scores) / len(peaks)
    excess = -scale * math.log(share) if abs(shape) < 1e-6 else scale / shape * (share**-shape - 1)
    return above(scores, start + excess)


def above(scores: Scores, threshold: float) -> float:
    """The threshold, or the next number where it is the lowest score of all: a constant score never raises an alarm."""
    return threshold if threshold > scores.min() else float(np.nextafter(threshold, math.inf))
