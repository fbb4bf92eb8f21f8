import numpy as np
import pytest

from regard.metrics import anomaly
from regard.tasks.anomaly.evaluation import SIGNATURES, Labelled, Scored, compare, measure, to_metrics

LABELS = np.zeros(400, bool)
LABELS[200:230] = True
SERIES = [Labelled(LABELS, 10)]


def test_a_perfect_detector_has_all_points():
    figures = measure(SERIES, Scored([LABELS.astype(float)], 0.5))
    volumes = {name: figures.pop(name) for name in ("vus_pr", "vus_roc")}
    assert figures == pytest.approx(dict.fromkeys(figures, 100), abs=0.1)
    assert min(volumes.values()) > 85


def test_the_label_free_threshold_decides_on_alarms():
    figures = measure(SERIES, Scored([LABELS.astype(float)], 2.0))
    assert (figures["f1"], figures["nab_label_free"]) == (0, 0)
    assert figures["f1_best"] == pytest.approx(100)


def test_figures_of_others_are_behind_their_names():
    random = np.random.default_rng(0).random(400)
    figures = compare(SERIES, {"model": Scored([LABELS + 0.0], 0.5), "random": Scored([random], 0.999)})
    assert list(figures) == [*SIGNATURES, *(f"random.{name}" for name in SIGNATURES)]
    assert figures["random.vus_pr"] == pytest.approx(100 * anomaly.volumes(random, LABELS, 10).pr)
    assert figures["random.f1_adjusted"] > figures["random.f1_best"]


def test_curves_are_means_over_the_series_that_have_both():
    normal = Labelled(np.zeros(400, bool), 10)
    alone = measure(SERIES, Scored([LABELS + 0.0], 0.5))
    both = measure([*SERIES, normal], Scored([LABELS + 0.0, np.zeros(400)], 0.5))
    assert both["vus_pr"] == alone["vus_pr"]
    assert both["f1"] == alone["f1"]


def test_a_step_without_a_score_ranks_last():
    scores = LABELS.astype(float)
    scores[:100] = np.nan
    assert measure(SERIES, Scored([scores], 0.5))["auc_pr"] == pytest.approx(100)


def test_metrics_name_the_windows_of_their_volume():
    metrics = to_metrics({"vus_pr": 1.0, "k_means.vus_pr": 2.0}, SERIES)
    assert metrics["k_means.vus_pr"].value == metrics["k_means.vus_pr"].low == 2
    assert metrics["vus_pr"].signature.endswith("window 10")
