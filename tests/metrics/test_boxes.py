import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.metrics.boxes import check_boxes, from_corners, from_pixels, generalised_iou, iou, to_corners

LEFT = torch.tensor([0.25, 0.5, 0.5, 1.0])
RIGHT = torch.tensor([0.75, 0.5, 0.5, 1.0])
MIDDLE = torch.tensor([0.5, 0.5, 0.5, 1.0])

BOX = st.tuples(*[st.floats(0.1, 0.9)] * 2, *[st.floats(0.01, 1)] * 2)


def test_a_box_by_its_corners_and_back():
    assert_close(to_corners(MIDDLE), torch.tensor([0.25, 0.0, 0.75, 1.0]))
    assert_close(from_corners(to_corners(MIDDLE)), MIDDLE)
    assert_close(from_pixels(torch.tensor([[16.0, 12.0, 48.0, 36.0]]), 64, 48), torch.tensor([[0.5, 0.5, 0.5, 0.5]]))


def test_overlaps_by_hand():
    assert iou(MIDDLE, MIDDLE) == 1
    assert iou(LEFT, RIGHT) == 0
    assert_close(iou(LEFT, MIDDLE), torch.tensor(1 / 3))
    assert_close(iou(torch.tensor([0.5, 0.5, 1.0, 1.0]), torch.tensor([0.5, 0.5, 0.5, 0.5])), torch.tensor(0.25))


def test_generalised_overlaps_by_hand():
    assert_close(generalised_iou(LEFT, RIGHT), torch.tensor(0.0))  # they fill the box around both
    a, b = torch.tensor([0.125, 0.5, 0.25, 1.0]), torch.tensor([0.875, 0.5, 0.25, 1.0])
    assert_close(generalised_iou(a, b), torch.tensor(-0.5))  # half of the box around both is theirs


def test_all_pairs_come_by_broadcasting():
    pairs = iou(torch.stack((LEFT, MIDDLE))[:, None], torch.stack((LEFT, MIDDLE, RIGHT))[None])
    assert_close(pairs, torch.tensor([[1, 1 / 3, 0], [1 / 3, 1, 1 / 3]]))


@given(BOX, BOX)
def test_both_are_symmetric_and_in_their_ranges(first, second):
    a, b = torch.tensor(first), torch.tensor(second)
    plain, general = iou(a, b), generalised_iou(a, b)
    assert_close(general, generalised_iou(b, a))
    assert 0 <= plain <= 1 + 1e-6
    assert -1 <= general <= plain + 1e-6


@given(BOX, BOX)
def test_cells_counted_one_by_one_give_the_same_overlap(first, second):
    fine = 64
    a, b = ((torch.tensor(each) * fine).round().clamp_min(2) // 2 * 2 / fine for each in (first, second))
    cells = (torch.arange(-fine, 2 * fine) + 0.5) / fine

    def covered(box):
        near, far = to_corners(box)[:2], to_corners(box)[2:]
        across, down = ((cells > near[axis]) & (cells < far[axis]) for axis in (0, 1))
        return down[:, None] & across[None]

    both, either = (covered(a) & covered(b)).sum(), (covered(a) | covered(b)).sum()
    assert_close(iou(a, b), (both / either).float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("side", [1e-3, 2e-5, 1e-6, 1e-7])
def test_a_box_is_one_with_itself_however_small(side):
    box = torch.tensor([0.3, 0.7, side, side])
    moved = torch.tensor([0.0, 0.0, side, side])
    assert iou(box, box) == generalised_iou(box, box) == 1
    assert_close(iou(moved, moved + torch.tensor([side / 2, 0.0, 0.0, 0.0])), torch.tensor(1 / 3))


def test_boxes_of_no_size_give_numbers_and_gradients():
    boxes = torch.tensor([[0.5, 0.5, 0.0, 0.0]], requires_grad=True)
    found = generalised_iou(boxes, boxes.detach())
    found.sum().backward()
    assert found.isfinite().all()
    assert boxes.grad.isfinite().all()


def test_a_gradient_leads_boxes_that_do_not_touch_together():
    box = torch.tensor([0.2, 0.5, 0.1, 0.1], requires_grad=True)
    generalised_iou(box, torch.tensor([0.8, 0.5, 0.1, 0.1])).backward()
    assert box.grad[0] > 0


def test_a_good_box_passes():
    check_boxes(torch.stack((LEFT, MIDDLE, RIGHT)), "cells.png")
    check_boxes(torch.zeros(0, 4), "cells.png")


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ([0.9, 0.5, 0.4, 0.1], r"cells.png: box 2 \(platelet\) reaches outside its picture: .* are 0.7, 0.45, 1.1, 0.55"),
        ([0.5, 0.5, 0.0, 0.1], r"box 2 \(platelet\) needs a width and a height above 0, got 0.5, 0.5, 0, 0.1"),
        ([0.5, 0.5, 0.1, -0.1], "needs a width and a height above 0"),
        ([math.nan, 0.5, 0.1, 0.1], "has numbers that are not finite, nan"),
    ],
)
def test_a_bad_box_is_refused_by_name(box, message):
    with pytest.raises(ValueError, match=message):
        check_boxes(torch.tensor([[0.5, 0.5, 0.1, 0.1], box]), "cells.png", ["cell", "platelet"])


@pytest.mark.unhooked
def test_what_is_no_box_is_refused():
    with pytest.raises(ValueError, match=r"cells.png needs boxes of \(objects, 4\), got shape \(1, 2, 4\)"):
        check_boxes(torch.zeros(1, 2, 4), "cells.png")
    with pytest.raises(ValueError, match=r"boxes need a last dimension of 4 numbers, got shape \(2, 3\)"):
        iou(torch.zeros(2, 4), torch.zeros(2, 3))
