import math

import numpy as np
import pytest

from regard.tasks.anomaly.threshold import choose_threshold, peaks_over_threshold

GENERATOR = np.random.default_rng(0)


def test_a_quantile_is_reached_by_its_share_of_the_scores():
    scores = GENERATOR.random(10_000)
    assert (scores >= choose_threshold(scores, "quantile", 0.01)).mean() == pytest.approx(0.01, abs=2e-4)


@pytest.mark.parametrize(
    ("draw", "tail"),
    [(GENERATOR.exponential, lambda rate: -math.log(rate)), (GENERATOR.random, lambda rate: 1 - rate)],
)
def test_extreme_values_are_continued_beyond_the_scores(draw, tail):
    thresholds = [peaks_over_threshold(draw(size=2000), 1e-4) for _ in range(20)]
    assert np.median(thresholds) == pytest.approx(tail(1e-4), rel=0.1)


def test_a_rate_among_the_peaks_and_a_few_scores_are_the_quantile():
    scores = GENERATOR.random(1000)
    assert peaks_over_threshold(scores, 0.1) == np.quantile(scores, 0.9)
    assert peaks_over_threshold(scores[:50], 0.01) == np.quantile(scores[:50], 0.99)


@pytest.mark.parametrize("method", ["pot", "quantile"])
def test_scores_that_are_all_equal_raise_no_alarm(method):
    assert choose_threshold(np.zeros(500), method, 0.001) > 0


def test_without_any_score_nothing_is_an_alarm():
    assert choose_threshold(np.array([np.nan]), "pot", 0.001) == math.inf


def test_missing_scores_do_not_count():
    scores = GENERATOR.random(500)
    assert choose_threshold(np.append(scores, np.nan), "pot", 0.001) == choose_threshold(scores, "pot", 0.001)
