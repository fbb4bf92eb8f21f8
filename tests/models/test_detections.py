import pytest
import torch
from torch.testing import assert_close

from regard.metrics.boxes import to_corners
from regard.models.detections import Objects, add_noise, collate_objects


def several():
    return collate_objects(
        [
            Objects(torch.tensor([2, 1]), torch.tensor([[0.5, 0.5, 0.2, 0.4], [0.2, 0.2, 0.1, 0.1]])),
            Objects(torch.tensor([0]), torch.tensor([[0.7, 0.3, 0.2, 0.2]])),
            Objects(torch.zeros(0, dtype=torch.long), torch.zeros(0, 4)),
        ]
    )


def test_things_stand_in_front_of_what_fills_up():
    objects = several().to("cpu")
    assert objects.labels.tolist() == [[2, 1], [0, 0], [0, 0]]
    assert objects.keep.tolist() == [[True, True], [True, False], [False, False]]
    assert_close(objects.boxes[1, 0], torch.tensor([0.7, 0.3, 0.2, 0.2]))


def test_noise_stays_within_what_it_is_told():
    objects = several()
    noise = add_noise(objects, 3, groups=50, shift=0.5, scale=0.25, flip=0.0)
    assert noise.boxes.shape == (3, 50, 2, 4)
    assert (noise.labels == objects.labels[:, None]).all()
    wanted, found = objects.boxes[:, None], noise.boxes
    assert ((found[..., :2] - wanted[..., :2]).abs() <= 0.25 * wanted[..., 2:] + 1e-6).all()
    ratio = found[..., 2:] / wanted[..., 2:]
    assert ratio.min() >= 0.75 - 1e-6
    assert ratio.max() <= 1.25 + 1e-6
    assert to_corners(found).isfinite().all()


def test_a_share_of_labels_is_wrong():
    objects = several()
    noise = add_noise(objects, 3, groups=2000, flip=0.3)
    wrong = (noise.labels != objects.labels[:, None])[:2].float().mean()
    assert abs(wrong - 0.3 * 2 / 3) < 0.02
    assert noise.labels.min() == 0
    assert noise.labels.max() == 2


def test_noise_comes_from_its_generator():
    first, second = (add_noise(several(), 3, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first.boxes, second.boxes)
    assert torch.equal(first.labels, second.labels)


def test_labels_without_boxes_are_refused():
    with pytest.raises(ValueError, match=r"2 labels need as many boxes, \(objects, 4\), got shape \(1, 4\)"):
        collate_objects([Objects(torch.tensor([0, 1]), torch.zeros(1, 4))])


@pytest.mark.parametrize("option", [{"groups": 0}, {"shift": 1.5}, {"scale": 1.0}, {"flip": -0.1}])
def test_noise_out_of_bounds_is_refused(option):
    with pytest.raises(ValueError, match="noise needs 1 group or more, shift from 0 to 1"):
        add_noise(several(), 3, **option)
