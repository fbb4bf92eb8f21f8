import numpy as np
import pytest
import torch

from regard.data.image.augment.flip import Flip

PICTURE = torch.arange(6.0).view(1, 2, 3) / 6
BOXES = torch.tensor([[0.2, 0.3, 0.1, 0.4]])


@pytest.mark.parametrize(
    ("across", "down", "sides", "box"),
    [
        (1.0, 0.0, [2], [0.8, 0.3, 0.1, 0.4]),
        (0.0, 1.0, [1], [0.2, 0.7, 0.1, 0.4]),
        (1.0, 1.0, [1, 2], [0.8, 0.7, 0.1, 0.4]),
        (0.0, 0.0, [], [0.2, 0.3, 0.1, 0.4]),
    ],
)
def test_pixels_and_boxes_are_flipped_alike(across, down, sides, box):
    found = Flip(across, down)(PICTURE, np.random.default_rng(0), BOXES)
    assert torch.equal(found.picture, PICTURE.flip(sides) if sides else PICTURE)
    torch.testing.assert_close(found.boxes, torch.tensor([box]))
    assert found.stayed.tolist() == [True]


def test_half_of_them_are_flipped():
    chance = np.random.default_rng(0)
    flipped = sum(not torch.equal(Flip()(PICTURE, chance).picture, PICTURE) for _ in range(400))
    assert 160 < flipped < 240


def test_a_probability_is_a_share():
    with pytest.raises(ValueError, match=r"the probability of a flip needs to be from 0 to 1, got -1.0"):
        Flip(0.5, -1.0)
