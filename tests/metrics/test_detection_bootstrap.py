import numpy as np
import pytest
import torch

from regard.metrics.detection import average_precision
from regard.metrics.detection_bootstrap import (
    COCO_THRESHOLDS,
    find_true_positives,
    mean_over_classes,
    measure_mean_precision,
    rank_detections,
    resample_precision,
)
from regard.models.detections import Detections, Objects

LEFT, RIGHT = [0.25, 0.5, 0.3, 0.3], [0.75, 0.5, 0.3, 0.3]


def found(*things):
    labels, boxes, scores = zip(*things, strict=True) if things else ((), (), ())
    return Detections(torch.tensor(labels).long(), torch.tensor(boxes).view(-1, 4), torch.tensor(scores))


def there(*things):
    labels, boxes = zip(*things, strict=True) if things else ((), ())
    return Objects(torch.tensor(labels).long(), torch.tensor(boxes).view(-1, 4))


def scattered(seed, pictures=12, classes=3):
    """Things, and detections near some of them, with scores of few different values."""
    draw = torch.Generator().manual_seed(seed)
    right, said = [], []
    for _ in range(pictures):
        count = int(torch.randint(0, 5, (), generator=draw))
        boxes = torch.rand(count, 4, generator=draw) * 0.3 + 0.3
        labels = torch.randint(0, classes, (count,), generator=draw)
        right.append(Objects(labels, boxes))
        near = torch.cat((boxes, boxes + 0.05 * torch.randn(count, 4, generator=draw), torch.rand(2, 4, generator=draw)))
        wrong = torch.randint(0, classes, (2,), generator=draw)
        scores = torch.randint(1, 9, (2 * count + 2,), generator=draw) / 10
        said.append(Detections(torch.cat((labels, labels, wrong)), near.clamp_min(0.01), scores))
    return said, right


def test_the_surest_of_those_that_overlap_a_thing_enough_is_right():
    shared = np.array([[0.4, 0.0], [0.7, 0.1], [0.9, 0.0], [0.2, 0.6]])
    assert find_true_positives(shared, 0.5).tolist() == [False, True, False, True]
    assert find_true_positives(shared, 0.65).tolist() == [False, True, False, False]
    assert find_true_positives(np.zeros((3, 0)), 0.5).tolist() == [False] * 3


def test_the_area_by_hand():
    said = [found((0, LEFT, 0.9), (0, RIGHT, 0.8)), found((0, LEFT, 0.7))]
    right = [there((0, LEFT)), there((0, LEFT))]
    every = rank_detections(said, right, 0, (0.5,))
    assert every.objects.tolist() == [1, 1]
    assert every.true_positives.tolist() == [[True, False, True]]
    assert resample_precision(every, np.ones((1, 2)))[0] == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert resample_precision(every, np.array([[2.0, 0.0], [0.0, 2.0]])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_average_precision(seed):
    said, right = scattered(seed)
    for overlap in (0.5, 0.75):
        every = [rank_detections(said, right, number, (overlap,)) for number in range(3)]
        expected = average_precision(said, right, 3, overlap).mean
        assert mean_over_classes(every, np.ones((1, 12)))[0] == pytest.approx(100 * expected)


def test_counting_a_picture_twice_is_having_it_twice():
    said, right = scattered(7)
    times = np.arange(12) % 3
    more = [place for place, count in enumerate(times) for _ in range(count)]
    every = [rank_detections(said, right, number, COCO_THRESHOLDS) for number in range(3)]
    twice = [
        rank_detections([said[each] for each in more], [right[each] for each in more], number, COCO_THRESHOLDS)
        for number in range(3)
    ]
    found = mean_over_classes(every, times[None].astype(float))[0]
    assert found == pytest.approx(mean_over_classes(twice, np.ones((1, len(more))))[0])


def test_the_interval_lies_around_the_score_and_is_the_same_each_time():
    said, right = scattered(3)
    every = [rank_detections(said, right, number, (0.5,)) for number in range(3)]
    score = measure_mean_precision(every, "how")
    assert score.low < score.value < score.high
    assert score == measure_mean_precision(every, "how")
    assert score.signature == "how"


def test_nothing_found_is_nothing_and_a_class_that_is_not_there_does_not_count():
    right = [there((0, LEFT)), there((0, LEFT), (0, RIGHT))]
    nothing = [found(), found()]
    assert measure_mean_precision([rank_detections(nothing, right, 0, COCO_THRESHOLDS)], "")[:3] == (0.0, 0.0, 0.0)
    absent = rank_detections([found((1, LEFT, 0.5)), found()], right, 1, COCO_THRESHOLDS)
    assert np.isnan(measure_mean_precision([absent], "").value)
    assert np.isnan(measure_mean_precision([absent], "").low)
    exact = rank_detections([found((0, LEFT, 0.5)), found((0, LEFT, 0.5), (0, RIGHT, 0.6))], right, 0, COCO_THRESHOLDS)
    assert measure_mean_precision([exact, absent], "").value == 100.0
