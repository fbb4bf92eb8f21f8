import math

import numpy as np
import pytest

from regard.metrics import nab

STANDARD = nab.PROFILES["standard"]


def corpus(*flagged, rows=200, windows=((100, 109), (150, 159))):
    scores = np.zeros(rows)
    scores[list(flagged)] = 1
    return [nab.File(scores, windows)]


def score(*flagged, profile=STANDARD, **options):
    return nab.score_corpus(corpus(*flagged, **options), 0.5, profile)


def test_no_flags_score_zero_and_perfect_flags_score_100():
    assert score() == 0
    assert score(100, 150) == pytest.approx(100)


def test_a_window_counts_once_by_its_earliest_flag():
    assert score(100, 104, 150) == pytest.approx(score(100, 150))
    assert score(104) < score(100)
    sigma = 2 / (1 + math.exp(-5 * 6 / 10)) - 1
    assert score(104) == pytest.approx(100 * (1 + sigma / (2 / (1 + math.exp(-5)) - 1)) / 4)


def test_a_false_alarm_costs_more_the_further_it_is_behind_a_window():
    near, far, before = (score(100, 150, row) for row in (110, 140, 60))
    assert 100 > near > far
    assert before == pytest.approx(100 - 100 * 0.11 / 4)
    assert far == pytest.approx(before)


def test_flags_in_probation_do_not_count():
    assert nab.probation_rows(200) == 30
    assert nab.probation_rows(100_000) == 750
    assert score(29, 100, 150) == pytest.approx(100)
    assert score(30, 100, 150) < 100


def test_profiles_weigh_false_alarms_and_misses():
    low_alarms, low_misses = nab.PROFILES["reward_low_FP_rate"], nab.PROFILES["reward_low_FN_rate"]
    assert score(60, 100, 150, profile=low_alarms) < score(60, 100, 150)
    assert score(100, profile=low_misses) == pytest.approx(50)


def test_the_threshold_is_optimised_over_the_corpus():
    generator = np.random.default_rng(0)
    first, second = generator.random(300), generator.random(200)
    first[[120, 121]], second[60] = 1.5, 1.2
    files = [nab.File(first, [(118, 130)]), nab.File(second, [(55, 70)])]
    best = nab.optimise_threshold(files)
    assert best.threshold == 1.2
    assert nab.score_corpus(files, best.threshold) == pytest.approx(best.score)
    thresholds = np.concatenate((first, second))
    assert best.score == pytest.approx(max(nab.score_corpus(files, threshold) for threshold in thresholds))


def test_where_every_flag_costs_no_flags_are_best():
    files = [nab.File(np.linspace(1, 0, 200), [(190, 195)])]
    assert nab.optimise_threshold(files, nab.Profile(1.0, 10.0, 1.0)) == (0, math.inf)


def test_equal_scores_are_flagged_together():
    scores = np.zeros(200)
    scores[[60, 100]] = 1
    files = [nab.File(scores, [(100, 109)])]
    assert nab.optimise_threshold(files).score == pytest.approx(nab.score_corpus(files, 1.0))
