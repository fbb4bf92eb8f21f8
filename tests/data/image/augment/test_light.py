import numpy as np
import pytest
import torch

from regard.data.image.augment.light import Light


def test_brightness_adds_and_contrast_goes_about_the_mean():
    picture = torch.tensor([[[0.4, 0.6]]])
    found = [Light(0.1, 0.0)(picture, np.random.default_rng(seed)).picture for seed in range(50)]
    assert all(float(each[0, 0, 1] - each[0, 0, 0]) == pytest.approx(0.2, abs=1e-6) for each in found)
    assert 0.4 < min(float(each.mean()) for each in found) < 0.45
    found = [Light(0.0, 0.5)(picture, np.random.default_rng(seed)).picture for seed in range(50)]
    assert all(float(each.mean()) == pytest.approx(0.5, abs=1e-6) for each in found)
    spans = [float(each[0, 0, 1] - each[0, 0, 0]) for each in found]
    assert 0.2 / 1.5 - 1e-6 <= min(spans) < 0.15
    assert 0.27 < max(spans) <= 0.3 + 1e-6


def test_less_than_nothing_is_refused():
    with pytest.raises(ValueError, match=r"a brightness and a contrast of 0 or more, got 0.1 and -1.0"):
        Light(0.1, -1.0)
