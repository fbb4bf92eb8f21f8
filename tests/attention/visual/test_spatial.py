import pytest
import torch
from torch.testing import assert_close

from regard.attention.visual.spatial import Spatial

IMAGE = torch.tensor([[[[1.0, 0.0], [4.0, 2.0]], [[3.0, 2.0], [0.0, 2.0]]]])  # means 2 1 / 2 2, largest 3 2 / 4 2


def small(kernel=1, **options):
    module = Spatial(2, kernel, **options)
    torch.nn.init.zeros_(module.f.weight)
    torch.nn.init.zeros_(module.f.bias)
    return module


def test_mean_and_peak_of_a_place_decide_how_much_of_it_passes():
    module = small()
    module.f.weight.data[0, :, 0, 0] = torch.tensor([2.0, -1.0])
    module.f.bias.data[0] = 0.5
    attended = module.attend(IMAGE)
    weights = torch.tensor([2 * 2 - 3 + 0.5, 2 * 1 - 2 + 0.5, 2 * 2 - 4 + 0.5, 2 * 2 - 2 + 0.5]).sigmoid()
    assert_close(attended.weights, weights[None, None, None])
    assert_close(attended.context, IMAGE * weights.view(2, 2))


def test_a_place_is_judged_by_its_surroundings_and_nothing_stands_outside():
    module = small(3)
    module.f.weight.data[0, 1, 1, 0] = 1.0  # the largest number at the left
    assert_close(module.score(IMAGE), torch.tensor([[[[0.0, 3.0, 0.0, 4.0]]]]))


def test_places_may_compete():
    module = small(normalise="softmax")
    assert_close(module.attend(IMAGE).weights, torch.full((1, 1, 1, 4), 0.25))


@pytest.mark.parametrize("kernel", [0, 2, -1])
def test_a_window_without_a_middle_is_refused(kernel):
    with pytest.raises(ValueError, match=f"Spatial needs an odd kernel, as many places to each side, got {kernel}"):
        Spatial(2, kernel)
