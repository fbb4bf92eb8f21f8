import numpy as np
import pytest

from regard.metrics import anomaly


def flags(text):
    """Labels spelt as a text: # is an anomaly."""
    return np.array([character == "#" for character in text])


LABELS = flags("....###......#....")


def draw_scores(seed, labels, strength=0.6, digits=None):
    generator = np.random.default_rng(seed)
    scores = generator.random(len(labels)) + strength * labels
    return scores if digits is None else scores.round(digits)


def test_a_perfect_detector_has_areas_of_one():
    assert anomaly.areas(LABELS.astype(float), LABELS) == pytest.approx((1, 1))


def test_areas_worked_by_hand():
    scores, labels = np.array([4.0, 3, 2, 1]), flags("#.#.")
    assert anomaly.areas(scores, labels) == pytest.approx((0.5 * 1 + 0.5 * 2 / 3, 0.75))


def test_equal_scores_are_flagged_together():
    assert anomaly.areas(np.zeros(18), LABELS) == pytest.approx((4 / 18, 0.5))


def brute_force(scores, labels, window):
    """Areas of one buffer, written out point by point from the definition."""
    count, positives = len(labels), labels.sum()
    segments = anomaly.find_segments(labels)
    soft = labels.astype(float)
    for first, last in segments:
        for distance in range(1, window // 2 + 1):
            for point in (first - distance, last + distance):
                if 0 <= point < count:
                    soft[point] += np.sqrt(1 - distance / window)
    soft = np.minimum(soft, 1)
    merged = []
    for first, last in segments:
        start, end = max(0, first - window // 2), last + window // 2
        if merged and start <= merged[-1][1]:
            start, _ = merged.pop()
        merged.append((start, end))
    curve = [(0.0, 0.0, 1.0)]
    for rank in np.linspace(0, count - 1, anomaly.THRESHOLDS).astype(int):
        flagged = scores >= np.sort(scores)[::-1][rank]
        hits = (soft * flagged).sum()
        mass = (positives + positives + (soft * flagged)[~labels].sum()) / 2
        existence = np.mean([flagged[first : last + 1].any() for first, last in merged])
        curve.append((min(1, hits / mass) * existence, (flagged.sum() - hits) / (count - mass), hits / flagged.sum()))
    recall, alarms, precision = np.array(curve).T
    pr = (np.diff(recall) * precision[1:]).sum()
    recall, alarms = np.append(recall, 1), np.append(alarms, 1)
    return pr, (np.diff(alarms) * (recall[1:] + recall[:-1]) / 2).sum()


@pytest.mark.parametrize("window", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("digits", [None, 1])
def test_volumes_are_the_mean_over_buffers(window, digits):
    labels = flags("..####.....#..........###" * 3 + "....#")
    scores = draw_scores(window, labels, digits=digits)
    expected = np.mean([brute_force(scores, labels, width) for width in range(window + 1)], 0)
    assert anomaly.volumes(scores, labels, window) == pytest.approx(tuple(expected))


def test_a_detection_just_after_an_anomaly_counts_in_a_volume_only():
    labels = flags("." * 40 + "#####" + "." * 40)
    late = np.roll(labels, 4).astype(float) + np.linspace(0, 0.01, len(labels))
    assert anomaly.volumes(late, labels, 20).pr > anomaly.areas(late, labels).pr + 0.2


def test_the_window_of_a_series_is_its_period():
    steps = np.arange(5000)
    noise = np.random.default_rng(0).normal(size=5000)
    assert anomaly.suggest_window(np.sin(2 * np.pi * steps / 50) + 0.2 * noise) == 50
    assert anomaly.suggest_window(np.ones(100)) == 125
    assert anomaly.suggest_window(np.arange(5.0)) == 125


def test_f1_worked_by_hand():
    found = anomaly.detection(flags("..##..#"), flags(".###..."))
    assert found == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert anomaly.detection(flags("......."), flags(".###...")) == (0, 0, 0)


def test_point_adjustment_flags_the_whole_of_a_detected_anomaly():
    adjusted = anomaly.adjust_points(flags("#....#...."), flags("..#...###."))
    assert adjusted.tolist() == flags("#....#....").tolist()
    adjusted = anomaly.adjust_points(flags("#......#.."), flags("..#...###."))
    assert adjusted.tolist() == flags("#.....###.").tolist()


@pytest.mark.parametrize("seed", range(4))
def test_the_best_thresholds_are_the_best_of_all(seed):
    labels = flags("..####.....#..........###..........")
    scores = draw_scores(seed, labels, 0.3, digits=1 + seed % 2)
    plain = [anomaly.detection(scores >= threshold, labels).f1 for threshold in scores]
    adjusted = [anomaly.detection(anomaly.adjust_points(scores >= threshold, labels), labels).f1 for threshold in scores]
    assert anomaly.best_f1(scores, labels).f1 == pytest.approx(max(plain))
    assert anomaly.best_adjusted_f1(scores, labels).f1 == pytest.approx(max(adjusted))


def test_random_scores_look_good_with_point_adjustment_and_with_nothing_else():
    labels = np.zeros(20_000, bool)
    labels[3000:4500] = labels[11_000:12_500] = True
    scores = np.random.default_rng(0).random(len(labels))
    assert anomaly.best_adjusted_f1(scores, labels).f1 > 0.9
    assert anomaly.best_f1(scores, labels).f1 < 0.3
    assert anomaly.volumes(scores, labels, 100).pr < 0.3


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (np.zeros(3), flags("#..."), r"one value for each point, got \(3,\) and \(4,\)"),
        (np.array([0, np.nan]), flags("#."), "scores need to be finite to be ranked"),
        (np.zeros(2), flags(".."), "got 0 of 2"),
        (np.zeros(2), flags("##"), "got 2 of 2"),
    ],
)
def test_scores_without_a_curve_are_refused(scores, labels, message):
    for metric in (anomaly.areas, anomaly.best_f1, anomaly.best_adjusted_f1):
        with pytest.raises(ValueError, match=message):
            metric(scores, labels)
    with pytest.raises(ValueError, match=message):
        anomaly.volumes(scores, labels, 5)


def test_a_negative_buffer_is_refused():
    with pytest.raises(ValueError, match="a buffer has at least 0 points, got -1"):
        anomaly.volumes(np.arange(18.0), LABELS, -1)
