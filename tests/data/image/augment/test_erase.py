import numpy as np
import pytest
import torch

from regard.data.image.augment.erase import Erase


def test_one_rectangle_gets_one_grey_and_is_not_too_large():
    picture = torch.rand(3, 30, 40)
    areas = []
    for seed in range(60):
        found = Erase(1.0, largest=0.25)(picture, np.random.default_rng(seed)).picture
        rows, columns = torch.nonzero((found != picture).any(0), as_tuple=True)
        if len(rows) == 0:
            continue
        part = found[:, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert part.unique().numel() == 1
        areas.append(part[0].numel() / 1200)
    assert max(areas) <= 0.25
    assert max(areas) > 0.18
    assert len(areas) > 50


def test_it_happens_as_often_as_it_should():
    picture = torch.rand(1, 30, 40)
    chance = np.random.default_rng(0)
    assert 40 < sum(Erase(0.3)(picture, chance).picture is not picture for _ in range(200)) < 80
    assert all(Erase(0.0)(picture, chance).picture is picture for _ in range(20))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probability": 2.0}, "the probability of erasing"),
        ({"largest": -1.0}, "the largest share to erase"),
        ({"slimmest": 0.0}, "above 0 and at most 1, got 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Erase(**settings)
