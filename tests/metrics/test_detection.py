import math

import pytest
import torch

from regard.metrics.detection import average_precision
from regard.models.detections import Detections, Objects

NOTHING = Detections(torch.zeros(0, dtype=torch.long), torch.zeros(0, 4), torch.zeros(0))


def box(x, size=0.1):
    return [x, 0.5, size, size]


def objects(*things):
    labels, places = zip(*things, strict=True) if things else ((), ())
    return Objects(torch.tensor(labels, dtype=torch.long), torch.tensor([box(x) for x in places]).view(-1, 4))


def detections(*things):
    labels, places, scores = zip(*things, strict=True)
    return Detections(torch.tensor(labels), torch.tensor([box(x) for x in places]), torch.tensor(scores))


def test_everything_found_and_nothing_else_is_one():
    right = [objects((0, 0.2), (0, 0.5)), objects((0, 0.8))]
    found = [detections((0, 0.2, 0.9), (0, 0.5, 0.3)), detections((0, 0.8, 0.6))]
    assert average_precision(found, right, 1) == (1.0, (1.0,))


def test_a_curve_by_hand():
    right = [objects((0, 0.1), (0, 0.3), (0, 0.5), (0, 0.7))]
    found = [detections((0, 0.1, 0.9), (0, 0.9, 0.8), (0, 0.3, 0.7), (0, 0.5, 0.6), (0, 0.95, 0.5))]
    # recall 1/4 at precision 1, then 2/4 at 2/3 and 3/4 at 3/4: at a recall of 2/4 the best to come is 3/4
    assert average_precision(found, right, 1).mean == pytest.approx(1 / 4 * 1 + 1 / 4 * 3 / 4 + 1 / 4 * 3 / 4)


def test_a_second_detection_of_one_thing_is_wrong():
    right = [objects((0, 0.2), (0, 0.8))]
    found = [detections((0, 0.2, 0.9), (0, 0.2, 0.8), (0, 0.8, 0.7))]
    assert average_precision(found, right, 1).mean == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)


def test_a_box_that_overlaps_too_little_is_wrong():
    right = [objects((0, 0.5))]
    assert average_precision([detections((0, 0.53, 0.9))], right, 1).mean == 1.0  # 0.07 / 0.13 is 0.54
    assert average_precision([detections((0, 0.54, 0.9))], right, 1).mean == 0.0  # 0.06 / 0.14 is 0.43
    assert average_precision([detections((0, 0.54, 0.9))], right, 1, overlap=0.4).mean == 1.0


def test_classes_are_judged_apart_and_one_that_is_nowhere_does_not_count():
    right = [objects((0, 0.2), (1, 0.8))]
    found = [detections((0, 0.2, 0.9), (0, 0.8, 0.8), (2, 0.5, 0.9))]
    mean, classes = average_precision(found, right, 3)
    assert classes[:2] == (1.0, 0.0)
    assert math.isnan(classes[2])
    assert mean == 0.5


def test_nothing_found_is_none_and_nothing_there_is_no_number():
    assert average_precision([NOTHING], [objects((0, 0.2))], 1).mean == 0.0
    assert math.isnan(average_precision([NOTHING], [objects()], 1).mean)


def test_the_order_of_equally_sure_detections_does_not_matter():
    right = [objects((0, 0.2)), objects((0, 0.8))]
    good, bad = detections((0, 0.2, 0.5)), detections((0, 0.1, 0.5))
    first = average_precision([good, bad], right, 1).mean
    second = average_precision([bad, detections((0, 0.8, 0.5))], right, 1).mean
    assert first == second == 0.25  # half of what was said is right, and half of what is there is found


def test_more_of_what_is_wrong_never_helps():
    right = [objects((0, 0.2), (0, 0.8))]
    values = [
        average_precision([detections((0, 0.2, 0.9), (0, 0.8, 0.5), *[(0, 0.5, 0.6)] * wrong)], right, 1).mean
        for wrong in range(4)
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


def test_lists_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="got 1 lists for 2 pictures"):
        average_precision([NOTHING], [objects(), objects()], 1)
    with pytest.raises(ValueError, match="an overlap is a share above 0 and up to 1, got 50"):
        average_precision([NOTHING], [objects()], 1, overlap=50.0)
