"""Comparison of detectors on labelled series: the model, k-means, PCA and random scores through the same metrics."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.metrics import anomaly, nab
from regard.metrics.text import Measurement, Metrics

Scores = NDArray[np.float64]
Labels = NDArray[np.bool_]


class Labelled(NamedTuple):
    """Labels of a series and the window of its VUS."""

    labels: Labels
    window: int


class Scored(NamedTuple):
    """Scores of a detector on each series, and the threshold that it chose without labels."""

    scores: Sequence[Scores]
    threshold: float


SIGNATURES = {
    "vus_pr": "volume under the precision-recall surface, mean over series; window {window}",
    "vus_roc": "volume under the ROC surface, mean over series; window {window}",
    "auc_pr": "area under the precision-recall curve, mean over series",
    "f1": "F1 of the alarms over points, threshold without labels",
    "f1_best": "F1 over points at the best threshold, mean over series: an upper bound that needs the labels",
    "f1_adjusted": "the same with point adjustment: to be read beside that of random scores alone",
    "nab": "NAB score, standard profile, at the threshold that is best on these labels, as on its scoreboard",
    "nab_label_free": "NAB score, standard profile, at the threshold without labels",
}
"""Metrics by name, and what they are."""


def compare(series: Sequence[Labelled], detectors: Mapping[str, Scored]) -> dict[str, float]:
    """Figures of each detector: those of the first by the name of the metric, those of others behind the detector's name."""
    figures = dict[str, float]()
    for number, (name, scored) in enumerate(detectors.items()):
        prefix = f"{name}." if number else ""
        figures |= {f"{prefix}{metric}": value for metric, value in measure(series, scored).items()}
    return figures


def measure(series: Sequence[Labelled], scored: Scored) -> dict[str, float]:
    """Metrics of one detector; curves need a series that has both normal steps and anomalies."""
    ranked = [
        (np.nan_to_num(scores, nan=0.0), labelled)
        for scores, labelled in zip(scored.scores, series, strict=True)
        if labelled.labels.any() and not labelled.labels.all()
    ]
    volumes = [anomaly.volumes(scores, labelled.labels, labelled.window) for scores, labelled in ranked]
    flags = np.concatenate([scores >= scored.threshold for scores in scored.scores])
    files = [
        nab.File(np.nan_to_num(scores, nan=0.0), [(int(first), int(last)) for first, last in anomaly.find_segments(labels)])
        for scores, (labels, _) in zip(scored.scores, series, strict=True)
    ]
    values = {
        "vus_pr": _mean([volume.pr for volume in volumes]),
        "vus_roc": _mean([volume.roc for volume in volumes]),
        "auc_pr": _mean([anomaly.areas(scores, labelled.labels).pr for scores, labelled in ranked]),
        "f1": anomaly.detection(flags, np.concatenate([labelled.labels for labelled in series])).f1,
        "f1_best": _mean([anomaly.best_f1(scores, labelled.labels).f1 for scores, labelled in ranked]),
        "f1_adjusted": _mean([anomaly.best_adjusted_f1(scores, labelled.labels).f1 for scores, labelled in ranked]),
        "nab": nab.optimise_threshold(files).score,
        "nab_label_free": nab.score_corpus(files, scored.threshold),
    }
    return {name: value if name.startswith("nab") else 100 * value for name, value in values.items()}


def to_metrics(figures: Mapping[str, float], series: Sequence[Labelled]) -> Metrics:
    """Figures as metrics with their signatures; they have no interval, since the steps of a series are not independent."""
    windows = sorted({labelled.window for labelled in series})
    text = ", ".join(map(str, windows[:4])) + ", ..." * (len(windows) > 4)
    return {
        name: Measurement(value, value, value, SIGNATURES[name.rpartition(".")[2]].format(window=text))
        for name, value in figures.items()
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
