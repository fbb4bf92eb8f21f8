import numpy as np
import pytest
import torch

from regard.data.image.augment.crop import Crop


def marked() -> torch.Tensor:
    """Every pixel says where it is."""
    return torch.arange(20 * 30.0).view(1, 20, 30) / 600


def test_a_crop_is_a_part_of_the_picture_and_boxes_know_where():
    picture = marked()
    sizes = set()
    for seed in range(30):
        part, boxes, stayed = Crop(0.5)(picture, np.random.default_rng(seed), torch.tensor([[0.5, 0.5, 0.1, 0.1]]))
        high, wide = part.shape[1:]
        assert 10 <= high <= 20
        assert 15 <= wide <= 30
        top, left = divmod(round(float(part[0, 0, 0]) * 600), 30)
        assert torch.equal(part, picture[:, top : top + high, left : left + wide])
        if stayed.all():
            x, y, width, height = boxes[0].tolist()
            lefts, tops = max(left, 13.5), max(top, 9)
            assert x * wide - width * wide / 2 == pytest.approx(lefts - left, abs=1e-3)
            assert y * high - height * high / 2 == pytest.approx(tops - top, abs=1e-3)
        sizes.add((high, wide))
    assert len(sizes) > 10


def test_a_crop_brought_back_to_size_shows_things_larger():
    picture = torch.zeros(1, 40, 40)
    picture[:, 15:25, 15:25] = 1
    for seed in range(10):
        part, boxes, _ = Crop(0.6, upscale=True)(
            picture, np.random.default_rng(seed), torch.tensor([[0.5, 0.5, 0.25, 0.25]])
        )
        assert part.shape == (1, 40, 40)
        assert float(part.sum()) / 1600 == pytest.approx(float(boxes[0, 2] * boxes[0, 3]), abs=0.02)


def test_a_whole_crop_is_the_picture():
    assert torch.equal(Crop(1.0)(marked(), np.random.default_rng(0)).picture, marked())


def test_the_least_is_a_share():
    with pytest.raises(ValueError, match=r"the least share of a crop needs to be from 0 to 1, got 2.0"):
        Crop(2.0)
