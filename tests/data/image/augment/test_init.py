import numpy as np
import pytest
import torch

from regard.data.image.augment import Augmented, Change, Compose, keep_boxes, share
from regard.data.image.augment.affine import Affine
from regard.data.image.augment.crop import Crop
from regard.data.image.augment.erase import Erase
from regard.data.image.augment.flip import Flip
from regard.data.image.augment.light import Light

EVERY = [Affine(), Affine(fill=1.0, stretch=0.2), Crop(0.4), Crop(0.4, upscale=True), Erase(1.0), Flip(0.5, 0.5), Light()]
BOXES = torch.tensor([[0.5, 0.5, 0.2, 0.4], [0.05, 0.9, 0.1, 0.2], [0.9, 0.1, 0.1, 0.1]])


@pytest.mark.parametrize("change", [*EVERY, Compose(tuple(EVERY))], ids=str)
def test_a_change_is_a_pure_function_of_the_picture_and_the_generator(change):
    assert isinstance(change, Change)
    picture, boxes = torch.rand(3, 17, 23), BOXES.clone()
    before = picture.clone()
    one, other = (change(picture, np.random.default_rng(5), boxes) for _ in range(2))
    assert torch.equal(picture, before)
    assert torch.equal(boxes, BOXES)
    assert torch.equal(one.picture, other.picture)
    assert torch.equal(one.boxes, other.boxes)
    assert torch.equal(one.picture, change(picture, np.random.default_rng(5)).picture), "boxes change no pixel"
    results = [change(picture, np.random.default_rng(seed)).picture for seed in range(8)]
    assert any(result.shape != one.picture.shape or not torch.equal(result, one.picture) for result in results)


@pytest.mark.parametrize("change", [*EVERY, Compose(tuple(EVERY))], ids=str)
def test_what_comes_out_is_a_picture_with_boxes_inside(change):
    for seed in range(20):
        picture, boxes, stayed = change(torch.rand(1, 9, 14), np.random.default_rng(seed), BOXES)
        assert picture.min() >= 0
        assert picture.max() <= 1
        assert len(boxes) == stayed.sum()
        assert len(stayed) == 3
        low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
        assert (low > -1e-5).all()
        assert (high < 1 + 1e-5).all()
        assert (boxes[:, 2:] > 0).all()
    assert change(torch.rand(1, 9, 14), np.random.default_rng(0)).boxes is None


@pytest.mark.parametrize("change", EVERY, ids=str)
def test_all_frames_of_a_clip_change_alike(change):
    frame = torch.rand(3, 10, 12)
    clip = change(frame.expand(4, -1, -1, -1), np.random.default_rng(1)).picture
    assert clip.shape[:2] == (4, 3)
    for other in clip[1:]:
        assert torch.equal(other, clip[0])


@pytest.mark.parametrize("change", EVERY, ids=str)
def test_one_pixel_can_be_changed_too(change):
    for seed in range(10):
        assert change(torch.rand(1, 1, 1), np.random.default_rng(seed)).picture.shape == (1, 1, 1)


def test_boxes_that_a_later_change_drops_are_found_among_the_first():
    class Drop:
        def __init__(self, *places):
            self.places = list(places)

        def __call__(self, picture, chance, boxes=None):
            stayed = torch.ones(len(boxes), dtype=torch.bool)
            stayed[self.places] = False
            return Augmented(picture, boxes[stayed], stayed)

    boxes = torch.arange(16.0).view(4, 4)
    found = Compose((Drop(1), Drop(0, 2)))(torch.rand(1, 2, 2), np.random.default_rng(0), boxes)
    assert found.stayed.tolist() == [False, False, True, False]
    assert torch.equal(found.boxes, boxes[[2]])


def test_where_nothing_moves_every_box_stays():
    assert keep_boxes(torch.rand(1, 2, 2), BOXES).stayed.tolist() == [True] * 3
    assert keep_boxes(torch.rand(1, 2, 2), None).stayed is None


def test_a_share_is_from_nothing_to_all():
    share("luck", 0.0)
    with pytest.raises(ValueError, match=r"luck needs to be from 0 to 1, got 1.5"):
        share("luck", 1.5)
